# SPDX-License-Identifier: MIT
#
# Programs that tests and benchmarks run beside what they test. `make unit` and `make bench` build them.

recording_programs := $(OUT)/tests/make_recording $(OUT)/tests/measure_recording
unit bench: $(recording_programs)

$(recording_programs): $(OUT)/tests/%: $(OBJ)/tests/lib/%.o $(monitor_library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $< $(monitor_library) $(monitor_libs)

-include $(patsubst $(OUT)/tests/%,$(OBJ)/tests/lib/%.d,$(recording_programs))
