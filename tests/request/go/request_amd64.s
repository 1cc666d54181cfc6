// SPDX-License-Identifier: MIT
#include "textflag.h"

// func request(otherwise uint64, args *[6]uint64) uint64
TEXT ·request(SB), NOSPLIT, $0-24
	MOVQ otherwise+0(FP), DX
	MOVQ args+8(FP), AX
	ROLQ $3, DI
	ROLQ $13, DI
	ROLQ $61, DI
	ROLQ $51, DI
	XCHGQ BX, BX
	MOVQ DX, ret+16(FP)
	RET
