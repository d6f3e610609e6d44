#!/usr/bin/env bash
# Programs that people bring: the loss and gradients of their first step are PyTorch's, and each learns
source tests/accept/lib.sh
bin=${BUILD:-build}/bin/examples

expect "first steps are those of the table" bash tests/examples_test.sh "$bin"
for program in $(cut -f 1 tests/golden/programs.tsv | uniq); do
  began=$(now_ms)
  if "$bin/$program" >"$scratch/$program" 2>&1; then
    figure "$program" "learned in $(($(now_ms) - began)) ms, $(sed -n 's/ per step$/ a step/p' "$scratch/$program")"
  else
    tail -n 5 "$scratch/$program" | sed 's/^/  | /'
    expect "$program learns" false
  fi
done
# Clients of serve, while its model is replaced by others: nobody loses an answer.
folder=$scratch/model
mkdir "$folder"
"$bin/export" --steps 100 --save "$folder" >/dev/null || true
"$bin/serve" "$folder" --port 0 >"$scratch/serve" &
server=$!
until grep -q '^listens' "$scratch/serve"; do kill -0 "$server"; done
port=$(sed -n 's/^listens at port //p' "$scratch/serve")
row=$(printf '0.5 %.0s' {1..784})
client() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  local answer
  for ((i = 0; i < 200; i++)); do
    echo "$row" >&3
    read -r -t 60 answer <&3 && [[ $(wc -w <<<"$answer") == 10 && $answer != error* ]] || return 1
  done
}
clients=()
for ((c = 0; c < 8; c++)); do client & clients+=($!); done
for seed in 2 3; do "$bin/export" --steps 1 --seed $seed --save "$folder" >/dev/null || true; done
served=0
for c in "${clients[@]}"; do wait "$c" && served=$((served + 1)); done
expect "8 clients of serve got all answers" same "$served" 8
kill -TERM "$server" && wait "$server"
figure serve "$(tail -n 1 "$scratch/serve")"
expect "serve took new models" grep -q '^took the model anew' "$scratch/serve"
expect "serve answered in batches" awk '/^answered/ { exit !($2 == 1600 && $5 < $2) }' "$scratch/serve"
conclude
