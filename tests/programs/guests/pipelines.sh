# SPDX-License-Identifier: MIT
#
# Bash guest: pipelines, job control in a script, traps, subshells, here documents, process
# substitution, arrays, arithmetic and the statuses of all of them.
set -u
echo "pipeline: $(seq 1 1000 | sed 's/7/x/g' | grep -c x)"
seq 1 100000 | head -n 2
echo "pipestatus: ${PIPESTATUS[*]}"
false | true
echo "pipestatus: ${PIPESTATUS[*]} status $?"
set -o pipefail
false | true
echo "pipefail: $?"

set -m
(sleep 0.05; exit 3) &
wait $!
echo "background: $?"
# A signal that comes before the child has left bash's own code is lost: wait until it runs. When
# bash tells of its end is a matter of timing: not shown.
{
    sh -c 'echo started >started; exec sleep 100' &
    job=$!
    until [ -s started ]; do sleep 0.01; done
    kill -STOP %1
    kill -CONT %1
    kill -TERM %1
    wait "$job"
    status=$?
} 2>/dev/null
echo "killed: $status"
set +m

trap 'echo "trapped USR1"' USR1
kill -USR1 $$
trap 'echo "exit trap"' EXIT
(trap 'echo "subshell ends"' EXIT; exit 4)
echo "subshell: $?"

cat <<EOF
here document $((6 * 7))
EOF
diff <(printf 'a\nb\n') <(printf 'a\nc\n')
echo "diff: $?"
coproc upper { tr a-z A-Z; }
upper_pid=$!
exec {from}<&"${upper[0]}" {to}>&"${upper[1]}"
eval "exec ${upper[1]}>&-"
echo "coprocess" >&"$to"
exec {to}>&-
read -r line <&"$from"
wait "$upper_pid"
echo "$line"

declare -A colour=([sky]=blue [grass]=green)
for key in sky grass; do echo "$key is ${colour[$key]}"; done
[[ "2024-05-06" =~ ^([0-9]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
read -r -t 5 first rest < <(echo one two three)
echo "$first/$rest"
find_missing() { ls /nonexistent-file 2>&1 | sed 's/.*: //'; }
find_missing
ulimit -n 64 && echo "ulimit $(ulimit -n)"
exec 3>out.txt; echo "through descriptor 3" >&3; exec 3>&-
cat out.txt
nonexistent-command-here 2>/dev/null
echo "missing: $?"
bash -c 'kill -SEGV $$' 2>/dev/null
echo "died: $?"
exit 11
