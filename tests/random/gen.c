// SPDX-License-Identifier: MIT
//
// Random programs, in two steps:
//
//   gen pool POOL SEED                       instructions fit to stand in a program, as cases
//   gen programs POOL OUTCOMES OUT SEED N    N programs from those that OUTCOMES calls ok
//
// Between the two the guest runs the pool natively: what faults or is missing on this CPU shows
// there and nothing about CPUs need be known here.
//
// A program keeps four registers to itself (a Convention): two pointers, an index and a loop
// counter. No pool instruction writes them or rsp, so every memory operand keeps hitting what it
// hit in the pool, loops end and stacks balance; everything else may hold anything.
//
//   data arena   0x200 jump tables   0x400 fs operands   0x700..0x1100 operands   0x1400 stack
//                0x1700 pointers to call through
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "forms.h"

#define SLOT_BYTES 1536
#define CODE_LIMIT 1000 // no new construct is begun beyond this
#define POOL_PER_CONVENTION 9000
#define TABLE_AT 0x200
#define TABLE_ENTRIES 24
#define POINTER_AT 0x1700
#define DATA_MIDDLE 0xc00
#define NEAR_MIDDLE 0x1000
#define REACH 0x400 // how far from the middle an operand may start

typedef struct Convention {
    u8 data;    // = data arena + DATA_MIDDLE
    u8 near;    // = near arena + NEAR_MIDDLE
    u8 index;   // = INDEX_VALUE
    u8 counter; // loop counter
} Convention;
#define INDEX_VALUE 5

static const Convention conventions[] = {
    { RBX, RBP, R12, RCX },
    { R13, R12, RBP, R8 },
    { RSI, R13, RDI, R15 },
    { R14, RAX, RDX, RBX },
};
#define N_CONVENTIONS ARRAY_LEN(conventions)

static u32 free_gprs(const Convention *v)
{
    return 0xffffu & ~(1u << v->data | 1u << v->near | 1u << v->index | 1u << v->counter | 1u << RSP);
}

static void set_convention(CaseBuilder *c, const Convention *v)
{
    case_set(c, SET_GPR, v->data, BASE_DATA, DATA_MIDDLE);
    case_set(c, SET_GPR, v->near, BASE_NEAR, NEAR_MIDDLE);
    case_set(c, SET_GPR, v->index, BASE_NONE, INDEX_VALUE);
    c->head.traits |= CASE_NO_DF | CASE_FP_INIT;
}

// --- the pool ---

// Instructions that are fit to run once but not to stand among others.
static const ZydisMnemonic unfit[] = {
    // the fault depends on data
    ZYDIS_MNEMONIC_DIV, ZYDIS_MNEMONIC_IDIV,
    // the address depends on data
    ZYDIS_MNEMONIC_BT, ZYDIS_MNEMONIC_BTC, ZYDIS_MNEMONIC_BTR, ZYDIS_MNEMONIC_BTS,
    // they unmask floating-point exceptions
    ZYDIS_MNEMONIC_LDMXCSR, ZYDIS_MNEMONIC_VLDMXCSR, ZYDIS_MNEMONIC_FLDCW, ZYDIS_MNEMONIC_FLDENV,
    ZYDIS_MNEMONIC_FRSTOR, ZYDIS_MNEMONIC_FXRSTOR, ZYDIS_MNEMONIC_FXRSTOR64,
    // they store the address of the last x87 instruction
    ZYDIS_MNEMONIC_FNSTENV, ZYDIS_MNEMONIC_FNSAVE, ZYDIS_MNEMONIC_FXSAVE,
    ZYDIS_MNEMONIC_FXSAVE64, ZYDIS_MNEMONIC_XSAVE, ZYDIS_MNEMONIC_XSAVE64,
    // the direction flag is the skeleton's
    ZYDIS_MNEMONIC_STD,
};

static ZydisRegister gpr64(u8 number)
{
    return (ZydisRegister)(ZYDIS_REGISTER_RAX + number);
}

static bool fits_pool(const Insn *insn, const Convention *v)
{
    for (u32 i = 0; i < ARRAY_LEN(unfit); i++)
        if (unfit[i] == insn->info.mnemonic)
            return false;
    for (u32 i = 0; i < insn->info.operand_count; i++) {
        const ZydisDecodedOperand *op = &insn->ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
            continue;
        bool at_rip = op->mem.base == ZYDIS_REGISTER_RIP;
        bool at_fs = op->mem.segment == ZYDIS_REGISTER_FS && !op->mem.base && !op->mem.index;
        bool at_base = op->mem.base == gpr64(v->data) || op->mem.base == gpr64(v->near);
        bool index_known = !op->mem.index || op->mem.index == gpr64(v->index);
        if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN || !(at_rip || at_fs || at_base))
            return false;
        if (op->size > 512 || !index_known || op->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
            return false;
        if (at_base && (op->mem.disp.value > REACH || op->mem.disp.value < -REACH))
            return false;
    }
    return true;
}

static bool is_integer(const Form *f)
{
    switch (f->isa) {
    case ZYDIS_ISA_SET_I86:
    case ZYDIS_ISA_SET_I186:
    case ZYDIS_ISA_SET_I386:
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_PPRO:
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_LONGMODE:
    case ZYDIS_ISA_SET_BMI1:
    case ZYDIS_ISA_SET_BMI2:
    case ZYDIS_ISA_SET_LZCNT:
    case ZYDIS_ISA_SET_POPCNT:
    case ZYDIS_ISA_SET_MOVBE:
    case ZYDIS_ISA_SET_ADOX_ADCX:
    case ZYDIS_ISA_SET_LAHF:
        return true;
    default:
        return false;
    }
}

static void pool_add(CaseWriter *w, const Insn *insn, const Convention *v, u16 group, u64 seed)
{
    CaseBuilder c;
    case_begin(&c, seed);
    set_convention(&c, v);
    for (u32 i = 0; i < insn->info.operand_count_visible; i++)
        if (insn->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            insn->ops[i].mem.base == ZYDIS_REGISTER_RIP)
            case_fix(&c, FIX_REL32, insn->info.raw.disp.offset, insn->len_bytes, BASE_NEAR,
                     (i64)(0x800 + 16 * (seed % 64) + (seed >> 32) % 3));
    case_code_add(&c, insn->bytes, insn->len_bytes);
    case_exit(&c, false);
    case_end(w, &c, group);
}

// Three in five of the pool are integer instructions, though most forms are vector forms.
static void write_pool(const char *path, u64 rng)
{
    u32 n_forms, n_integer = 0;
    Form *forms = forms_enumerate(&n_forms);
    Form *integer = calloc(n_forms, sizeof(Form));
    for (u32 i = 0; i < n_forms; i++)
        if (is_integer(&forms[i]))
            integer[n_integer++] = forms[i];
    CaseWriter *w = casefile_create(path, 64);
    for (u32 k = 0; k < N_CONVENTIONS; k++) {
        const Convention *v = &conventions[k];
        char name[32];
        snprintf(name, sizeof(name), "convention %u", k);
        Choice choice = {
            .rng = &rng,
            .gprs_free = free_gprs(v),
            .bases = 1u << v->data | 1u << v->near,
            .indexes = 1u << v->index,
            .plain = true,
        };
        for (u32 made = 0; made < POOL_PER_CONVENTION;) {
            const Form *f = rng_below(&rng, 5) < 3 ? &integer[rng_below(&rng, n_integer)]
                                                   : &forms[rng_below(&rng, n_forms)];
            Insn insn;
            if (!form_instantiate(f, &choice, &insn) || !fits_pool(&insn, v))
                continue;
            pool_add(w, &insn, v, casefile_group(w, name), rng_next(&rng));
            made++;
        }
    }
    casefile_close(w);
    free(integer);
    free(forms);
}

typedef struct PoolInsn {
    u8 bytes[INSN_MAX];
    u8 len_bytes;
    u8 disp_at; // of a rip-relative operand; 0: has none
    i64 near_at;
} PoolInsn;

typedef struct Pool {
    PoolInsn *insns;
    u32 count;
} Pool;

static Pool pools[N_CONVENTIONS];

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    long len_bytes = ftell(f);
    rewind(f);
    char *text = malloc((size_t)len_bytes + 1);
    if (!text || fread(text, 1, (size_t)len_bytes, f) != (size_t)len_bytes) {
        perror(path);
        exit(2);
    }
    text[len_bytes] = 0;
    fclose(f);
    return text;
}

static void pool_take(const Case *c)
{
    Pool *pool = &pools[c->group];
    PoolInsn *insn = &pool->insns[pool->count++];
    const CaseFix *fixes = case_fixes(c);
    *insn = (PoolInsn){ .len_bytes = (u8)(c->code_bytes - EXIT_BYTES) };
    memcpy(insn->bytes, case_code(c), insn->len_bytes);
    if (fixes[0].kind == FIX_REL32) {
        insn->disp_at = (u8)fixes[0].at;
        insn->near_at = fixes[0].value;
    }
}

// The lines of `outcomes` stand in the order of the cases: "ID ok HASH".
static void load_pools(const char *path, const char *outcomes)
{
    const CaseFile *file = (const CaseFile *)read_file(path);
    char *text = read_file(outcomes);
    const Case *c = (const Case *)((const u8 *)(file + 1) + file->n_groups * CASE_NAME_MAX);
    for (u32 k = 0; k < N_CONVENTIONS; k++)
        pools[k] = (Pool){ .insns = calloc(file->n_cases, sizeof(PoolInsn)) };
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        u32 id = (u32)strtoul(line, &line, 10);
        while (c->id < id)
            c = (const Case *)((const u8 *)c + c->size_bytes);
        if (!strncmp(line, " ok ", 4))
            pool_take(c);
    }
    for (u32 k = 0; k < N_CONVENTIONS; k++) {
        if (pools[k].count < POOL_PER_CONVENTION / 4) {
            fprintf(stderr, "random: convention %u has only %u instructions\n", k, pools[k].count);
            exit(2);
        }
    }
    free(text);
}

// --- programs ---

typedef struct Program {
    CaseBuilder c;
    const Convention *v;
    const Pool *pool;
    u64 *rng;
    u32 left;       // instructions still to be made
    u32 free_regs;
    Label functions[3];
    u32 n_functions;
    u32 in_function; // the number of the function being made + 1; 0: the main body
    u32 table_used;
    bool in_loop;
} Program;

static u32 pick_free(Program *p)
{
    for (;;) {
        u32 reg = rng_below(p->rng, 16);
        if (p->free_regs >> reg & 1)
            return reg;
    }
}

static bool has_room(const Program *p)
{
    return p->left > 0 && p->c.head.code_bytes < CODE_LIMIT;
}

static void emit_pool_insn(Program *p)
{
    const PoolInsn *insn = &p->pool->insns[rng_below(p->rng, p->pool->count)];
    u32 at = p->c.head.code_bytes;
    if (insn->disp_at && p->c.head.n_fixes > CASE_FIXES_MAX - 8)
        return;
    case_code_add(&p->c, insn->bytes, insn->len_bytes);
    if (insn->disp_at)
        case_fix(&p->c, FIX_REL32, at + insn->disp_at, at + insn->len_bytes, BASE_NEAR,
                 insn->near_at);
    p->left -= p->left > 0;
}

static void emit_some(Program *p, u32 most)
{
    for (u32 n = 1 + rng_below(p->rng, most); n-- && has_room(p);)
        emit_pool_insn(p);
}

static void emit_block(Program *p, u32 depth);

static void emit_if(Program *p, u32 depth)
{
    Label other, end;
    label_init(&other);
    label_init(&end);
    u32 cc = rng_below(p->rng, 16);
    if (rng_one_in(p->rng, 2)) {
        asm_jcc(&p->c, cc, &end, true);
        emit_some(p, 5);
        label_bind(&p->c, &end);
        return;
    }
    asm_jcc(&p->c, cc, &other, false);
    emit_block(p, depth + 1);
    asm_jmp(&p->c, &end, false);
    label_bind(&p->c, &other);
    emit_some(p, 6);
    label_bind(&p->c, &end);
}

// Only the outermost loop of a body uses the counter; calls made in it save it.
static void emit_loop(Program *p, u32 depth)
{
    u32 counter = p->v->counter;
    if (p->in_loop)
        asm_push(&p->c, counter);
    bool outer = p->in_loop;
    p->in_loop = true;
    asm_mov_imm(&p->c, counter, (i32)(1 + rng_below(p->rng, 5)));
    Label top;
    label_init(&top);
    label_bind(&p->c, &top);
    emit_block(p, depth + 1);
    if (counter == RCX && rng_one_in(p->rng, 2)) {
        asm_loop(&p->c, &top);
    } else {
        asm_dec(&p->c, counter);
        asm_jcc(&p->c, CC_NE, &top, false);
    }
    p->in_loop = outer;
    if (p->in_loop)
        asm_pop(&p->c, counter);
}

// Functions call only functions with higher numbers, hence no recursion.
static void emit_call(Program *p)
{
    u32 callable = p->n_functions - p->in_function;
    if (!callable)
        return;
    Label *f = &p->functions[p->in_function + rng_below(p->rng, callable)];
    if (f->n_rel32 >= ARRAY_LEN(f->rel32))
        return;
    u32 reg = pick_free(p);
    asm_push(&p->c, p->v->counter);
    switch (rng_below(p->rng, 4)) {
    case 0:
        asm_lea_label(&p->c, reg, f);
        asm_branch_reg(&p->c, true, reg);
        break;
    case 1: {
        i32 disp = POINTER_AT - DATA_MIDDLE + 8 * (i32)rng_below(p->rng, 8);
        asm_lea_label(&p->c, reg, f);
        asm_store(&p->c, reg, p->v->data, disp);
        asm_branch_mem(&p->c, true, p->v->data, disp);
        break;
    }
    default:
        asm_call(&p->c, f);
    }
    asm_pop(&p->c, p->v->counter);
    p->left -= p->left > 0;
}

// Dispatches on a flag through a table, with all flags live across the jump.
static void emit_table_jump(Program *p)
{
    if (p->table_used + 2 > TABLE_ENTRIES || p->c.head.n_sets + 2 > CASE_SETS_MAX - 8)
        return;
    u32 first = p->table_used;
    u32 reg = pick_free(p);
    p->table_used += 2;
    asm_setcc_zero_extended(&p->c, rng_below(p->rng, 16), reg);
    asm_branch_table(&p->c, p->v->data, reg, (i32)(TABLE_AT + 8 * first) - DATA_MIDDLE);
    Label end;
    label_init(&end);
    for (u32 way = 0; way < 2; way++) {
        case_set(&p->c, SET_DATA, TABLE_AT / 8 + first + way, BASE_CODE, p->c.head.code_bytes);
        Label skip;
        label_init(&skip);
        asm_jcc(&p->c, rng_below(p->rng, 16), &skip, true); // the flags are read at the target
        emit_some(p, 3);
        label_bind(&p->c, &skip);
        if (way == 0)
            asm_jmp(&p->c, &end, false);
    }
    label_bind(&p->c, &end);
}

// An indirect jump to just behind it: cheap, and flags and red zone must survive.
static void emit_hop(Program *p)
{
    Label end;
    label_init(&end);
    u32 reg = pick_free(p);
    i32 slot = -8 * (i32)(1 + rng_below(p->rng, 16));
    asm_lea_label(&p->c, reg, &end);
    if (rng_one_in(p->rng, 2)) {
        asm_branch_reg(&p->c, false, reg);
    } else {
        asm_store(&p->c, reg, RSP, slot);
        asm_branch_mem(&p->c, false, RSP, slot);
    }
    asm_bytes(&p->c, 2, 0x0f, 0x0b); // never reached
    label_bind(&p->c, &end);
    asm_load(&p->c, pick_free(p), RSP, -8 * (i32)(1 + rng_below(p->rng, 16)));
    p->left -= p->left > 0;
}

static void emit_stack(Program *p, u32 depth)
{
    asm_push(&p->c, rng_below(p->rng, 16));
    if (rng_one_in(p->rng, 2))
        asm_bytes(&p->c, 1, 0x9c); // pushfq
    else
        asm_push(&p->c, pick_free(p));
    emit_block(p, depth + 1);
    if (rng_one_in(p->rng, 2)) {
        asm_pop(&p->c, pick_free(p));
        asm_pop(&p->c, pick_free(p));
    } else {
        asm_lea_disp(&p->c, RSP, RSP, 16);
    }
}

static void emit_string(Program *p)
{
    static const u8 ops[] = { 0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xae, 0xaf };
    u32 needs = 1u << RCX | 1u << RSI | 1u << RDI;
    if ((p->free_regs & needs) != needs)
        return;
    bool down = rng_one_in(p->rng, 6);
    asm_mov_imm(&p->c, RCX, (i32)rng_below(p->rng, 20));
    asm_lea_disp(&p->c, RSI, p->v->data, (i32)rng_below(p->rng, 0x200));
    asm_lea_disp(&p->c, RDI, p->v->data, (i32)rng_below(p->rng, 0x200) - 0x100);
    if (down)
        asm_bytes(&p->c, 1, 0xfd); // std
    asm_bytes(&p->c, 2, rng_one_in(p->rng, 2) ? 0xf2 : 0xf3, ops[rng_below(p->rng, sizeof(ops))]);
    if (down)
        asm_bytes(&p->c, 1, 0xfc); // cld
    p->left -= p->left > 0;
}

// Faults, and the handler continues behind it.
static void emit_fault(Program *p)
{
    if (p->c.head.n_sets >= CASE_SETS_MAX - 4)
        return;
    u32 kind = rng_below(p->rng, 5);
    u32 reg = pick_free(p);
    if (kind == 0)
        asm_mov_imm(&p->c, reg, 0);
    i64 at = p->c.head.code_bytes;
    switch (kind) {
    case 0: // div reg
        asm_bytes(&p->c, 3, 0x48 | reg >> 3, 0xf7, 0xf0 | (reg & 7));
        break;
    case 1:
        asm_bytes(&p->c, 2, 0x0f, 0x0b); // ud2
        break;
    case 2:
        asm_load(&p->c, reg, p->v->data, (i32)ARENA_NONE_AT - DATA_MIDDLE + 8);
        break;
    case 3:
        asm_store(&p->c, reg, p->v->near, (i32)ARENA_RO_AT - NEAR_MIDDLE + 8);
        break;
    default: // call through a page that is not there
        asm_branch_mem(&p->c, true, p->v->data, (i32)ARENA_NONE_AT - DATA_MIDDLE + 8);
    }
    case_set(&p->c, SET_RESUME, 0, BASE_NONE, at << 16 | p->c.head.code_bytes);
    p->left -= p->left > 0;
}

static void emit_block(Program *p, u32 depth)
{
    u32 items = 1 + rng_below(p->rng, depth ? 4 : 14);
    while (items-- && has_room(p)) {
        u32 dice = rng_below(p->rng, depth < 3 ? 40 : 28);
        if (dice < 22)
            emit_some(p, 4);
        else if (dice < 24)
            emit_hop(p);
        else if (dice < 26)
            emit_string(p);
        else if (dice < 27)
            emit_table_jump(p);
        else if (dice < 28)
            rng_one_in(p->rng, 4) ? emit_fault(p) : emit_some(p, 2);
        else if (dice < 32)
            emit_if(p, depth);
        else if (dice < 34)
            emit_loop(p, depth);
        else if (dice < 37)
            emit_call(p);
        else if (dice < 38)
            emit_table_jump(p);
        else
            emit_stack(p, depth);
    }
}

static void emit_return(Program *p)
{
    u32 reg = pick_free(p);
    switch (rng_below(p->rng, 6)) {
    case 0:
        asm_pop(&p->c, reg);
        asm_branch_reg(&p->c, false, reg);
        break;
    case 1:
        asm_lea_disp(&p->c, RSP, RSP, 8);
        asm_branch_mem(&p->c, false, RSP, -8);
        break;
    case 2:
        asm_bytes(&p->c, 2, 0xf3, 0xc3);
        break;
    default:
        asm_bytes(&p->c, 1, 0xc3);
    }
}

static void write_program(CaseWriter *w, u64 *rng, u16 group)
{
    Program p = { .rng = rng };
    u32 k = rng_below(rng, N_CONVENTIONS);
    p.v = &conventions[k];
    p.pool = &pools[k];
    p.free_regs = free_gprs(p.v);
    p.left = 5 + rng_below(rng, 56);
    p.n_functions = rng_below(rng, 4);
    for (u32 i = 0; i < p.n_functions; i++)
        label_init(&p.functions[i]);
    case_begin(&p.c, rng_next(rng));
    set_convention(&p.c, p.v);
    emit_block(&p, 0);
    case_exit(&p.c, false);
    for (u32 i = 0; i < p.n_functions; i++) {
        p.in_function = i + 1;
        p.in_loop = false;
        p.left += 3;
        label_bind(&p.c, &p.functions[i]);
        emit_block(&p, 2);
        emit_return(&p);
    }
    case_end(w, &p.c, group);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "pool")) {
        write_pool(argv[2], strtoull(argv[3], NULL, 0));
        return 0;
    }
    if (argc != 7 || strcmp(argv[1], "programs")) {
        fprintf(stderr, "usage: gen pool POOL SEED | gen programs POOL OUTCOMES OUT SEED COUNT\n");
        return 2;
    }
    load_pools(argv[2], argv[3]);
    u64 rng = strtoull(argv[5], NULL, 0);
    u32 count = (u32)strtoul(argv[6], NULL, 0);
    CaseWriter *w = casefile_create(argv[4], SLOT_BYTES);
    u16 group = casefile_group(w, "random programs");
    for (u32 i = 0; i < count; i++)
        write_program(w, &rng, group);
    casefile_close(w);
    return 0;
}
