# SPDX-License-Identifier: MIT
# Made from src/launch/options.def by `muninn --help=bash`; `make completions` rewrites it.

_muninn_options='--tool=
--eval=
--trace-children=
--trace-children-skip=
--trace-children-skip-by-arg=
--child-silent-after-fork=
--alloc-fns=
--soname-synonyms=
--track-fds=
--modify-fds=
--vgdb=
--quiet
--verbose
--command-line-only=
--version
--help
--log-fd=
--log-file=
--log-socket=
--time-stamp=
--profile-file=
--cachegrind-out-file=
--progress-interval=
--color=
--xml=
--xml-file=
--xml-fd=
--xml-socket=
--xml-protocol=
--xml-user-comment=
--json-file=
--sarif-file=
--error-exitcode=
--exit-on-first-error=
--only=
--baseline=
--suppressions=
--gen-suppressions=
--input-fd=
--num-callers=
--merge-recursive-frames=
--error-limit=
--show-error-list=
--summary=
--error-markers=
--show-below-main=
--fullpath-after=
--demangle=
--keep-debuginfo=
--read-inline-info=
--read-var-info=
--extra-debuginfo-path=
--allow-mismatched-debuginfo=
--enable-debuginfod=
--sym-offsets=
--run-libc-freeres=
--run-cxx-freeres=
--main-stacksize=
--aspace-minaddr=
--require-text-symbol=
--alignment=
--trace-malloc=
--xtree-memory=
--xtree-memory-file=
--xtree-compress-strings=
--redzone-size=
--realloc-zero-bytes-frees=
--stats
--debug
--trace=
--trace-syscalls=
--trace-signals=
--trace-redir=
--inject=
--stress=
--cache-size=
--help-debug
--help-dyn-options
--leak-check=
--leak-resolution=
--show-leak-kinds=
--errors-for-leak-kinds=
--leak-check-heuristics=
--show-reachable=
--show-possibly-lost=
--xtree-leak=
--xtree-leak-file=
--undef-value-errors=
--track-origins=
--partial-loads-ok=
--keep-stacktraces=
--freelist-vol=
--quarantine=
--freelist-big-blocks=
--workaround-gcc296-bugs=
--ignore-range-below-sp=
--ignore-ranges=
--show-mismatched-frees=
--show-realloc-size-zero=
--malloc-fill=
--free-fill=
--heap=
--heap-admin=
--stacks=
--pages-as-heap=
--depth=
--alloc-fn=
--ignore-fn=
--threshold=
--peak-inaccuracy=
--time-unit=
--detailed-freq=
--max-snapshots=
--massif-out-file=
--recording=
--recording-file=
--max-recording=
--snapshot-every=
--snapshot-when='
_muninn_subcommands='ps ctl heap view top minmem new-tool ms_print'

# bash cuts words at '=': --tool=none arrives as three of them.
_muninn()
{
    local cur=${COMP_WORDS[COMP_CWORD]} option= at=1 values= is_set= is_file=
    COMPREPLY=()
    while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -* && -z $option ]]; do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            ((at++))
            break
        elif [[ ${COMP_WORDS[at + 1]} != = ]]; then
            ((at++))
        elif ((COMP_CWORD <= at + 2)); then
            option=${COMP_WORDS[at]}
        else
            ((at += 3))
        fi
    done
    [[ $cur == = ]] && cur=
    if [[ -z $option ]]; then
        _muninn_word
        return
    fi
    case $option in
    --tool) values='none memcheck massif cachegrind count' ;;
    --trace-children) values='yes no' ;;
    --child-silent-after-fork) values='yes no' ;;
    --alloc-fns) is_file=1 ;;
    --track-fds) values='no yes all bad' ;;
    --modify-fds) values='no yes high' ;;
    --vgdb) values='yes no' ;;
    --command-line-only) values='yes no' ;;
    --log-file) is_file=1 ;;
    --time-stamp) values='yes no' ;;
    --profile-file) is_file=1 ;;
    --cachegrind-out-file) is_file=1 ;;
    --color) values='auto yes no' ;;
    --xml) values='yes no' ;;
    --xml-file) is_file=1 ;;
    --json-file) is_file=1 ;;
    --sarif-file) is_file=1 ;;
    --exit-on-first-error) values='yes no' ;;
    --only) is_file=1 ;;
    --baseline) is_file=1 ;;
    --suppressions) is_file=1 ;;
    --gen-suppressions) values='no yes all' ;;
    --error-limit) values='yes no' ;;
    --show-error-list) values='no yes all' ;;
    --summary) values='auto plain lines' ;;
    --show-below-main) values='yes no' ;;
    --demangle) values='yes no' ;;
    --keep-debuginfo) values='yes no' ;;
    --read-inline-info) values='yes no' ;;
    --read-var-info) values='yes no' ;;
    --extra-debuginfo-path) is_file=1 ;;
    --allow-mismatched-debuginfo) values='yes no' ;;
    --enable-debuginfod) values='yes no' ;;
    --sym-offsets) values='yes no' ;;
    --run-libc-freeres) values='yes no' ;;
    --run-cxx-freeres) values='yes no' ;;
    --require-text-symbol) is_file=1 ;;
    --trace-malloc) values='yes no' ;;
    --xtree-memory) values='none allocs full' ;;
    --xtree-memory-file) is_file=1 ;;
    --xtree-compress-strings) values='yes no' ;;
    --realloc-zero-bytes-frees) values='yes no' ;;
    --trace) values='blocks plan calls signals syscalls redir all none' is_set=1 ;;
    --trace-syscalls) values='yes no' ;;
    --trace-signals) values='yes no' ;;
    --trace-redir) values='yes no' ;;
    --inject) is_file=1 ;;
    --stress) values='tiny-blocks tiny-cache no-link signals often random-versions entries validate all none' is_set=1 ;;
    --leak-check) values='no summary full' ;;
    --leak-resolution) values='low med high' ;;
    --show-leak-kinds) values='definite indirect possible reachable all none' is_set=1 ;;
    --errors-for-leak-kinds) values='definite indirect possible reachable all none' is_set=1 ;;
    --leak-check-heuristics) values='stdstring length64 newarray multipleinheritance all none' is_set=1 ;;
    --show-reachable) values='yes no' ;;
    --show-possibly-lost) values='yes no' ;;
    --xtree-leak) values='yes no' ;;
    --xtree-leak-file) is_file=1 ;;
    --undef-value-errors) values='yes no' ;;
    --track-origins) values='yes no' ;;
    --partial-loads-ok) values='yes no' ;;
    --keep-stacktraces) values='alloc free alloc-and-free alloc-then-free none' ;;
    --quarantine) values='brief exact' ;;
    --workaround-gcc296-bugs) values='yes no' ;;
    --show-mismatched-frees) values='yes no' ;;
    --show-realloc-size-zero) values='yes no' ;;
    --heap) values='yes no' ;;
    --stacks) values='no yes apart' ;;
    --pages-as-heap) values='yes no' ;;
    --alloc-fn) is_file=1 ;;
    --ignore-fn) is_file=1 ;;
    --time-unit) values='i ms B' ;;
    --massif-out-file) is_file=1 ;;
    --recording) values='yes no' ;;
    --recording-file) is_file=1 ;;
    --snapshot-when) is_file=1 ;;
    esac
    if [[ -n $is_file ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    elif [[ -n $is_set && $cur == *,* ]]; then
        COMPREPLY=($(compgen -P "${cur%,*}," -W "$values" -- "${cur##*,}"))
    else
        COMPREPLY=($(compgen -W "$values" -- "$cur"))
    fi
}

# An option, the program, or something for it.
_muninn_word()
{
    if ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset "$at"
    elif ((at < COMP_CWORD)); then
        COMPREPLY=($(compgen -f -- "$cur"))
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$_muninn_options" -- "$cur"))
        [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null
    else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -c -f -- "$cur"))
        if ((COMP_CWORD == 1)) && [[ ${COMP_WORDS[0]##*/} == muninn ]]; then
            COMPREPLY+=($(compgen -W "$_muninn_subcommands" -- "$cur"))
        fi
    fi
}

complete -F _muninn muninn valgrind
