#!/usr/bin/env bash
# a character LSTM learns Shakespeare within 20 minutes; training steps beside the fastest peers
# For a machine that does nothing else. TEXT: the plays in one file. ONLY: learn or bench. PEERS:
# torch and tensorflow, which python3 must have.
source tests/accept/lib.sh
text=${TEXT:-../shared/data/text/tinyshakespeare.txt}
if [[ ${ONLY:-learn} == learn ]]; then
  [[ -e $text ]] || { echo "set TEXT to a file of Shakespeare's plays" >&2; exit 1; }
  began=$SECONDS
  timeout 1500 "$TROUPE" train char-lstm --data "$text" --threads 2 --epochs "${EPOCHS:-2}" --patience 6 \
    --output json --quiet >"$scratch/learned" || true
  seconds=$((SECONDS - began))
  loss=$(field validation_loss <"$scratch/learned")
  figure "steps, best after" "$(field steps <"$scratch/learned"), $(field best_step <"$scratch/learned")"
  figure "validation loss, nats a character" "$loss"
  expect "validation loss at most 1.65" at_most "$loss" 1.65
  expect "within 20 minutes (took $seconds s)" at_most "$seconds" 1200
fi
if [[ ${ONLY:-bench} == bench ]]; then
  for peer in ${PEERS:-torch tensorflow}; do
    "$TROUPE" bench train --threads 1 2 --peer "$peer" --rounds "${ROUNDS:-5}" --quiet --output json \
      >"$scratch/rows.$peer"
  done
  # of NAME FIELD: the worse of the calls, each beside one peer.
  of() {
    jq -s -r --arg n "$1" --arg f "$2" \
      'add | map(select(.name == $n) | .[$f] // empty) | max // empty' "$scratch"/rows.*
  }
  for threads in t1 t2; do
    for limit in "mlp 1.05" "lenet 1.05" "resnet20 1.10" "char_lstm 1.10"; do
      read -r model most <<<"$limit"
      row=train.$model.$threads
      expect "$row at most $most of the fastest peer (is $(of "$row" ratio | cut -c1-5))" \
        at_most "$(of "$row" ratio)" "$most"
    done
    fused=$(of train.char_lstm.$threads value) unrolled=$(of train.char_lstm_unrolled.$threads value)
    expect "an LSTM in one node at most 1.05 of an unrolled one ($fused, $unrolled ms)" \
      at_most "$(awk -v a="$fused" -v b="$unrolled" 'BEGIN { print a / b }')" 1.05
    loop=$(of train.char_lstm_loop.$threads value)
    expect "an LSTM in a loop at most 1.05 of an unrolled one ($loop, $unrolled ms)" \
      at_most "$(awk -v a="$loop" -v b="$unrolled" 'BEGIN { print a / b }')" 1.05
  done
fi
conclude
