# SPDX-License-Identifier: MIT
#
# Programs that tests run beside what they test. `make unit` builds them.

make_recording := $(OUT)/tests/make_recording
unit: $(make_recording)

$(make_recording): $(OBJ)/tests/lib/make_recording.o $(monitor_library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $< $(monitor_library) $(monitor_libs)

-include $(OBJ)/tests/lib/make_recording.d
