# SPDX-License-Identifier: MIT
#
# make hunt    all of the random searches; HUNT="kills --duration 600" chooses. docs/howto/hunt.md

hunt: bootstrap
	@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(OUT)) MUNINN=$(abspath $(launcher)) tests/hunt/run --full $(HUNT)
