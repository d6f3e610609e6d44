#!/usr/bin/env bash
# examples_test.sh FOLDER [SANITIZER]: the programs of docs/programs.md, built into FOLDER. The loss and the
# gradients of the first step of each are those of tests/golden/programs.tsv, which another
# framework computed; and those that take less than a second learn. With --self-test, on a program
# that is wrong.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# compare TABLE PROGRAM < what the program printed: each number to 1e-6 of itself. A sum of a
# gradient may be 0 but for rounding: it may be wrong by 1e-12 of the norm, too, and so may a whole
# gradient (of the bias of a key, which a softmax does not see): both may be wrong by 1e-15.
compare() {
  awk -F '\t' -v program="$2" '
    function near(is, want, slack) {
      d = is - want; if (d < 0) d = -d
      w = want < 0 ? -want : want
      return is ~ /^-?[0-9.]+(e[-+][0-9]+)?$/ && d <= 1e-6 * w + slack
    }
    NR == FNR { if ($1 == program) { n++; name[n] = $2; a[n] = $3; b[n] = $4; fields[n] = NF - 1 } next }
    {
      i++
      count = split($0, part, " ")
      if (i > n) { print program ": more than the table has: " $0; bad = 1 }
      else if (part[1] != name[i] || count != fields[i]) {
        print program ": not the line of " name[i] ": " $0; bad = 1
      } else if (!near(part[2], a[i], count == 3 ? 1e-12 * b[i] + 1e-15 : 0) ||
                 (count == 3 && !near(part[3], b[i], 1e-15))) {
        print program ": " $0 ", not " a[i] " " b[i]; bad = 1
      }
    }
    END {
      if (n == 0) { print program ": not in the table"; bad = 1 }
      if (i < n) { print program ": " i + 0 " lines, not " n; bad = 1 }
      exit bad
    }' "$1" -
}

if [[ ${1:-} == --self-test ]]; then
  table=$(mktemp)
  trap 'rm -f "$table"' EXIT
  printf 'a\tloss\t0.5\na\tw\t0\t2.5\nb\tloss\t1\n' >"$table"
  printf 'loss 0.50000001\nw 1e-16 2.5\n' | compare "$table" a
  for wrong in 'loss 0.51\nw 0 2.5' 'loss 0.5\nw 0 2.6' 'loss 0.5\nw 1e-9 2.5' 'loss 0.5\nv 0 2.5' \
    'loss 0.5' 'loss 0.5\nw 0 2.5\nx 1 1' 'loss nan\nw 0 2.5' 'loss 0.5\nw 0 nan' 'loss 0.5\nw 0'; do
    if printf "$wrong\n" | compare "$table" a >/dev/null; then
      echo "not found: $wrong"
      exit 1
    fi
  done
  exit 0
fi

failed=0
# learns PROGRAM ARGUMENT...: a run of less than a second.
learns() {
  local out
  out=$("$bin/$1" "${@:2}" 2>&1) || { printf '%s:\n%s\n' "$*" "$out"; failed=1; }
}

# serves FOLDER: serve answers two connections with one batch, takes a newer model, keeps the one that
# it has when a file is damaged, and ends when it is asked to.
serves() {
  local folder=$1 row out line port server from a b before
  wrong() { echo "serve: $*"; [[ -z ${server:-} ]] || kill -KILL "$server"; return 1; }
  says() { read -r -t 60 line <&"$from" && [[ $line == $1 ]]; }
  both() {
    echo "$row" >&3
    echo "$row" >&4
    read -r -t 60 a <&3 && read -r -t 60 b <&4 && [[ $a == "$b" ]]
  }
  out=$("$bin/export" --steps 1 --save "$folder") && { wrong "export learned in a step: $out"; return; }
  coproc "$bin/serve" "$folder" --batch 2 --wait 600000 --threads 1
  server=$COPROC_PID from=${COPROC[0]}
  says 'listens at port *' || { wrong "${line:-nothing}, not its port"; return; }
  port=${line##* } row=$(printf '0.5 %.0s' {1..784})
  exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
  both && awk '{ for (i = 1; i <= NF; i++) s += $i; exit !(NF == 10 && s > 0.9999 && s < 1.0001) }' <<<"$a" ||
    { wrong "'$a' and '$b'"; return; }
  before=$a
  echo 1 2 3 >&3
  read -r -t 60 line <&3 && [[ $line == "error 3 numbers, where a row has 784" ]] || { wrong "$line"; return; }
  printf '%s\n' "${row// /}" >&3
  read -r -t 60 line <&3 && [[ $line == "error a row is numbers with spaces"* ]] || { wrong "$line"; return; }
  "$bin/export" --steps 1 --seed 2 --save "$folder" >/dev/null || true
  says 'took the model anew' || { wrong "$line"; return; }
  both && [[ $a != "$before" ]] || { wrong "'$a' and '$b' of another model than '$before'"; return; }
  before=$a
  echo damaged >"$folder/damaged" && mv "$folder/damaged" "$folder/model.graph"
  while says '*' && [[ $line == took* ]]; do :; done
  [[ $line == "keeps the model that it has: "*"is no graph"* ]] || { wrong "$line"; return; }
  both && [[ $a == "$before" ]] || { wrong "'$a' and '$b', not '$before'"; return; }
  kill -TERM "$server"
  says 'answered 6 rows in 3 batches' || { wrong "$line"; return; }
  wait "$server"
}

# is_full FOLDER: serve goes on after more connections than it has descriptors, and refuses a port
# that is none.
is_full() {
  local line i server from port more=()
  wrong() { echo "serve: $*"; [[ -z ${server:-} ]] || kill -KILL "$server"; return 1; }
  timeout 60 "$bin/serve" "$1" --port 65536 >/dev/null || [[ $? == 2 ]] || { wrong "not refused: port 65536"; return; }
  coproc { ulimit -n 64 && exec "$bin/serve" "$1" --threads 1; }
  server=$COPROC_PID from=${COPROC[0]}
  read -r -t 60 line <&"$from" && port=${line##* } || { wrong "did not start"; return; }
  for ((i = 0; i < 64; i++)); do exec {more[i]}<>"/dev/tcp/127.0.0.1/$port"; done
  echo 1 >&"${more[0]}" && read -r -t 60 line <&"${more[0]}" || { wrong "does not answer one of many"; return; }
  for i in "${more[@]}"; do exec {i}>&-; done
  exec 3>&- 3<>"/dev/tcp/127.0.0.1/$port"
  echo 1 >&3 && read -r -t 60 line <&3 && [[ $line == error* ]] || { wrong "does not answer after many"; return; }
  kill -TERM "$server"
  wait "$server"
}

bin=$1
table=$here/golden/programs.tsv
for program in $(cut -f 1 "$table" | uniq); do
  "$bin/$program" --first-step | compare "$table" "$program" || failed=1
done
learns word2vec --steps 1000
learns wide_and_deep --steps 400 --rows 50000
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
serves "$folder" || failed=1
"$bin/export" --steps 1 --save "$folder" >/dev/null || true
if [[ ${2:-} == *undefined* ]]; then
  echo "skipped: serve without descriptors, of which the sanitizer needs two to look at an object"
else
  is_full "$folder" || failed=1
fi
exit $failed
