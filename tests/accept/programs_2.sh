#!/usr/bin/env bash
# Ops beside PyTorch, NumPy and SciPy: committed numbers that are made again, and times of functions
# ONLY: values or times, which are for a machine that does nothing else. ROUNDS: of each time.
# PYTHON: one with torch, numpy and scipy; without it numbers are not made again, nor times compared.
source tests/accept/lib.sh
python=${PYTHON:-python3}
peer=1
"$python" -c 'import torch, numpy, scipy' 2>/dev/null || peer=0

if [[ ${ONLY:-values} == values ]]; then
  echo "== values and gradients =="
  expect "ops compute what PyTorch, NumPy and SciPy do" cases ops \
    "functions of numbers*,arrays are rearranged*,segments are folded*,linear algebra computes*,networks and pictures*,losses compute*,optimizers make*,complex numbers*"
  expect "each op, with every hostile number" cases ops "each op that programs of others use*"
  expect "each op that takes complex numbers" cases ops "each op that takes complex numbers*"
  figure "bytes of the numbers" "$(cat tests/golden/ops/*.txt | wc -c)"
  if ((peer)); then
    mkdir "$scratch/ops"
    made() {
      "$python" tests/golden/make.py "$scratch/ops" >"$scratch/log" 2>&1 || { tail "$scratch/log"; return 1; }
      "$python" tests/golden/compare.py "$scratch/ops" tests/golden/ops
    }
    expect "make.py makes the committed numbers" made
  else
    figure "numbers made again" "skipped: $python cannot import torch, numpy and scipy"
  fi
fi

if [[ ${ONLY:-times} == times ]]; then
  echo "== times beside PyTorch =="
  if ((!peer)); then
    figure "times" "skipped: $python cannot import torch"
    conclude
  fi
  PATH=$(dirname "$(command -v "$python")"):$PATH
  bench=("$TROUPE" bench kernels --peer torch --rounds "${ROUNDS:-5}" --quiet --output json)
  "${bench[@]}" --only kernels.api. >"$scratch/rows"
  # Those that may take longer, and why.
  declare -A known=()
  while IFS=$'\t' read -r name reason; do
    [[ -z $name || $name == \#* ]] || known[$name]=$reason
  done <tests/accept/slow_functions.tsv
  while read -r row ratio; do
    name=${row#kernels.api.} name=${name%.t*}
    # A machine has slow minutes, and a row is looked at for one: of three looks one is within.
    for _ in 1 2; do
      [[ -z ${known[$name]:-} ]] && ! at_most "$ratio" 1.5 || break
      ratio=$("${bench[@]}" --only "$row" | jq -r '.[0].ratio')
    done
    if [[ -n ${known[$name]:-} ]]; then
      figure "$row: ${ratio:0:5}" "${known[$name]}"
    else
      expect "$row at most 1.5 of PyTorch's time (is ${ratio:0:5})" at_most "$ratio" 1.5
    fi
  done < <(jq -r '.[] | "\(.name) \(.ratio)"' "$scratch/rows")
  mean=$(jq -r '[.[].ratio | log] | add / length | exp' "$scratch/rows")
  figure "rows" "$(jq length "$scratch/rows")"
  expect "geometric mean at most 1.0 (is ${mean:0:5})" at_most "$mean" 1.0
fi
conclude
