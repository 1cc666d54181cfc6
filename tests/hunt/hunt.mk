# SPDX-License-Identifier: MIT
#
#   make hunt         all of the random searches; HUNT="kills --duration 600" chooses
#   make hunt-fuzz    builds the fuzzers of tests/hunt/fuzz into build/fuzz; needs clang
#
# docs/howto/hunt.md. The fuzzers are linked with the libraries of monitor and subcommands, built with
# sanitizers and coverage into a tree of their own.

hunt: bootstrap
	@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(OUT)) MUNINN=$(abspath $(launcher)) tests/hunt/run --full $(HUNT)

fuzz_src := $(filter-out tests/hunt/fuzz/fuzz.c,$(wildcard tests/hunt/fuzz/*.c))
fuzz_bin := $(patsubst tests/hunt/fuzz/%.c,$(OUT)/tests/hunt/fuzz/%,$(fuzz_src))
# Less the check of pointers that also refuses NULL + 0, which every compiler takes as NULL.
fuzz_sanitizers := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all \
                   -fno-sanitize=pointer-overflow
FUZZ_CC ?= clang

.PHONY: hunt-fuzz fuzzers
hunt-fuzz:
	@$(MAKE) --no-print-directory MODE=debug OUT=build/fuzz CC="$(FUZZ_CC)" \
	    CFLAGS="$(fuzz_sanitizers)" fuzzers

fuzzers: $(fuzz_bin)

$(OUT)/tests/hunt/fuzz/%: $(OBJ)/tests/hunt/fuzz/%.o $(OBJ)/tests/hunt/fuzz/fuzz.o \
                         $(inspect_library) $(monitor_library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -pie -fsanitize=address,undefined,fuzzer -o $@ $^ $(inspect_libs)

-include $(patsubst %.c,$(OBJ)/%.d,$(fuzz_src)) $(OBJ)/tests/hunt/fuzz/fuzz.d
