#!/usr/bin/env bash
# floors_test.sh [ROOT]: the includes of every file against the floors of docs/architecture.md.
# With --self-test, plants one violation of each rule in a scratch tree and expects it to be found.
set -euo pipefail

check() {  # check ROOT: prints one line per violation
  cd "$1"
  { find core graph devices ops serialization actors apps -type f \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 2>/dev/null |
    xargs -0 -r grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' || true; } |
    awk '
      BEGIN {
        may["core"] = " core "
        may["graph"] = " core graph "
        may["devices"] = " core devices "
        may["ops"] = " core graph devices ops "
        may["serialization"] = " core graph serialization "
        may["machines"] = " core graph devices serialization machines "
        may["sessions"] = " core graph devices ops serialization machines sessions "
        may["actors/net"] = " core actors/net "
        may["actors/processes"] = " core graph serialization actors/net actors/processes "
        may["actors"] = " core graph devices ops serialization machines sessions" \
                        " actors/net actors/processes actors "
        may["apps"] = may["actors"] " apps "
      }
      # The rooms of actors/ without CAF: the machines, wherever they stand, the transport, who
      # belongs to a job, and supervisors of processes.
      function floor(path) {
        if (path ~ /^actors\/burst\// || path ~ /^actors\/wake_up\./ ||
            path ~ /^actors\/master\/(blocked_reports|coordinator|coordinator_rules|dataset_places|journal|kept_answers|last_writes|live_schedule|mutex_turns|run_look|run_numbers|run_table|stage_round|step_shape|wait_lines)\./ ||
            path ~ /^actors\/worker\/(dataset_reads|partition_runs|resource_ids|shard)\./ ||
            path ~ /^actors\/resources\/(request|resource|participant|prompt_resource|rule_values|variable_(store|reads|joins|moves)|queue_(spec|state|operations|moves)|mutex_state)\./)
          return "machines"
        if (path ~ /^actors\/master\/(session_graphs|sessions|step_table)\./ ||
            path ~ /^actors\/(call|messages)\./)
          return "sessions"
        if (path ~ /^actors\/supervision\// && path !~ /_actor\.[ch]pp$/) return "actors/processes"
        if (path ~ /^actors\/(net|processes)\//) return substr(path, 1, index(substr(path, 8), "/") + 6)
        return substr(path, 1, index(path, "/") - 1)
      }
      # Where CAF may be: the contracts that name actors, files named for one, and the rooms that
      # start and end them.
      function has_caf(path) {
        return path ~ /^apps\// || path ~ /^actors\/(interfaces|inline_send|spawn)\./ ||
               path ~ /^actors\/.*_actor\.[ch]pp$/ || path ~ /^actors\/runtime\// ||
               path == "actors/client/detail/session_core.hpp" || path ~ /^actors\/worker\/resource_table\./
      }
      function bad(why) { print file ":" line ": includes " quote named closing ", " why }
      {
        file = $0; sub(/:.*/, "", file)
        rest = substr($0, length(file) + 2)
        line = rest; sub(/:.*/, "", line)
        match(rest, /[<"][^>"]*/)
        quote = substr(rest, RSTART, 1); closing = quote == "<" ? ">" : quote
        named = header = substr(rest, RSTART + 1, RLENGTH - 1)
        from = floor(file)
        public = file ~ /^[a-z]+\/[^\/]*\.hpp$/

        # Programs of the outside: the installed headers, and their own beside them.
        if (file ~ /^apps\/examples\// && (quote == "<" ? header ~ /^troupe\// : header !~ /\//)) next
        if (quote == "<" && header ~ /^troupe\//)
          bad("but in the tree a header is included by its path")
        else if (quote == "\"" && header !~ /^(core|graph|devices|ops|serialization|actors|apps)\//)
          bad("but headers of the tree are included by their path from its root")
        else if (quote == "<" && header ~ /^(core|graph|devices|ops|serialization|actors|apps)\//)
          bad("but headers of the tree stand in quotes")
        else if (quote == "\"" && header !~ /\.capnp\.h$/) {
          to = floor(header)
          if (index(may[from], " " to " ") == 0) bad("but " from "/ may not use " to "/")
          if (header ~ /\/detail\// && from != to) bad("but it is private to " to "/")
        }
        if (header ~ /^caf\// && !has_caf(file)) bad("but CAF lives in actors/, in files that say so")
        if ((header ~ /^(capnp|kj)\// || header ~ /\.capnp\.h$/) && from != "serialization")
          bad("but Cap'"'"'n Proto lives in serialization/")
        if (header ~ /^(cuda|cublas|cudnn|curand|cufft|nccl|thrust\/|cub\/)/ &&
            file !~ /^devices\/cuda\// && file !~ /\.cu$/)
          bad("but CUDA lives in devices/cuda/ and in *.cu")
        if (header ~ /dnnl/ && file !~ /^ops\/onednn\//) bad("but oneDNN lives in ops/onednn/")
        if (header ~ /^Eigen\// && public) bad("but public headers do not use Eigen")
        if (header ~ /^(capnp|kj)\// && public) bad("but public headers do not use Cap'"'"'n Proto")
        if (header ~ /^fmt\// && from == "core" && file ~ /\.hpp$/)
          bad("but headers of core/ use the standard library only")
        if (from == "core" && quote == "<" && header ~ /\// && header !~ /^(fmt|sys)\//)
          bad("but core/ uses the standard library and fmt only")
      }'
}

# The planted includes, and what is to be said of them: file by file, all are looked at in one go.
expect_found() {  # expect_found FILE INCLUDE
  plant "$illegal" "$1" "$2"
  wanted+=("$1:$(wc -l <"$illegal/$1"): includes $2,")
}
expect_legal() { plant "$legal" "$1" "$2"; }
plant() {  # plant TREE FILE INCLUDE
  mkdir -p "$1/${2%/*}"
  printf '#include %s\n' "$3" >>"$1/$2"
}

if [[ ${1:-} == --self-test ]]; then
  illegal=$(mktemp -d) legal=$(mktemp -d) wanted=()
  trap 'rm -rf "$illegal" "$legal"' EXIT
  expect_found core/a.cpp '"graph/plan.hpp"'
  expect_found core/a.hpp '<fmt/format.h>'
  expect_found core/a.cpp '<Eigen/Core>'
  expect_found core/a.cpp '"status.hpp"'
  expect_found core/a.cpp '"troupe/core/status.hpp"'
  expect_found graph/a.cpp '<core/status.hpp>'
  expect_found graph/a.cpp '<troupe/core/status.hpp>'
  expect_found apps/bench/a.cpp '<troupe/troupe.hpp>'
  expect_found ops/a.cpp '"apps/troupe.hpp"'
  expect_found graph/a.hpp '"devices/device.hpp"'
  expect_found graph/passes/a.cpp '"ops/op.hpp"'
  expect_found devices/cpu/a.cpp '"graph/plan.hpp"'
  expect_found devices/a.cpp '<cuda_runtime.h>'
  expect_found ops/kernels/a.cpp '"actors/client/session.hpp"'
  expect_found ops/kernels/a.cpp '<oneapi/dnnl/dnnl.hpp>'
  expect_found ops/a.hpp '<Eigen/Core>'
  expect_found ops/a.cpp '"serialization/tensor_io.hpp"'
  expect_found serialization/a.cpp '"devices/device.hpp"'
  expect_found serialization/a.hpp '<capnp/message.h>'
  expect_found actors/net/a.cpp '<caf/all.hpp>'
  expect_found actors/net/a.cpp '"actors/worker/shard.hpp"'
  expect_found actors/net/a.cpp '"graph/plan.hpp"'
  expect_found actors/processes/a.cpp '<caf/all.hpp>'
  expect_found actors/processes/a.cpp '"actors/messages.hpp"'
  expect_found actors/burst/a.cpp '<caf/all.hpp>'
  expect_found actors/resources/a.cpp '<caf/all.hpp>'
  expect_found actors/worker/shard.cpp '<caf/all.hpp>'
  expect_found actors/burst/a.cpp '"actors/messages.hpp"'
  expect_found actors/master/coordinator.cpp '"actors/master/step_table.hpp"'
  expect_found actors/master/sessions.cpp '"actors/interfaces.hpp"'
  expect_found actors/master/sessions.cpp '<caf/all.hpp>'
  expect_found actors/a.cpp '<capnp/message.h>'
  expect_found actors/a.cpp '"serialization/schema/wire.capnp.h"'
  expect_found actors/a.cpp '"apps/commands/train.hpp"'
  expect_found actors/a.cpp '"graph/detail/order.hpp"'
  expect_legal core/a.cpp '<fmt/format.h>'
  expect_legal graph/passes/a.cpp '"core/status.hpp"'
  expect_legal graph/a.cpp '"graph/detail/order.hpp"'
  expect_legal ops/kernels/a.cpp '<Eigen/Core>'
  expect_legal ops/onednn/a.cpp '<oneapi/dnnl/dnnl.hpp>'
  expect_legal serialization/a.cpp '"serialization/schema/wire.capnp.h"'
  expect_legal actors/resources/a_actor.cpp '<caf/all.hpp>'
  expect_legal actors/processes/a.cpp '"serialization/messages.hpp"'
  expect_legal actors/a.cpp '"actors/processes/children.hpp"'
  expect_legal actors/burst/a.cpp '"devices/lanes.hpp"'
  expect_legal actors/worker/partition_runs.cpp '"actors/resources/request.hpp"'
  expect_legal apps/examples/a.cpp '<troupe/troupe.hpp>'
  expect_legal apps/examples/a.cpp '"b.hpp"'
  expect_legal apps/bench/a.cpp '"apps/troupe.hpp"'
  expect_legal apps/a.cpp '"actors/client/session.hpp"'
  found=$(check "$illegal")
  for line in "${wanted[@]}"; do
    [[ $'\n'$found == *$'\n'"$line"* ]] || { echo "not found: $line"; exit 1; }
  done
  found=$(check "$legal")
  [[ -z $found ]] || { echo "wrongly found: $found"; exit 1; }
  echo "every planted violation was found"
  exit
fi

found=$(check "${1:-$(dirname "$0")/..}")
[[ -z $found ]] || { echo "$found"; exit 1; }
