#!/usr/bin/env bash
# an extension of each kind is one new file and at most one line elsewhere (tests/rooms/)
source tests/accept/lib.sh
# ROOMS: only those patches, by name. Each begins with lines of its own:
#   Program: troupe_test_FOLDER     that has the patch's test
#   Cases: PATTERN                  of its test cases
# NEXT stands for the first number that no message has.
copy=$scratch/copy
rooms=${ROOMS:-$(basename -as .patch tests/rooms/*.patch)}

told() { sed -n "s/^$2: //p;/^diff/q" "tests/rooms/$1.patch"; }
# created PATCH: the files that it adds. elsewhere PATCH: the lines that it adds to or takes from
# others, but for what `troupe-gen` writes.
created() { git apply --summary "tests/rooms/$1.patch" | awk '$1 == "create" { print $4 }'; }
elsewhere() {
  git apply --numstat "tests/rooms/$1.patch" |
    awk -v created="$(created "$1")" '
      BEGIN { n = split(created, names, "\n"); for (i = 1; i <= n; ++i) mine[names[i]] }
      !($3 in mine) && $3 !~ /^ops\/api\// { lines += $1 > $2 ? $1 : $2 }
      END { print lines + 0 }'
}
next=$(git grep -hoE '^struct MessageAt<[0-9]+>' serialization/messages | wc -l)
apply() {
  sed "s/MessageAt<NEXT>/MessageAt<$next>/" "tests/rooms/$1.patch" |
    patch -d "$copy" -p1 --no-backup-if-mismatch "${@:2}" >"$scratch/log" 2>&1
}
build() { cmake --build "$copy/build" --target "$1" >"$scratch/log" 2>&1; }
# Both fail loudly.
or_show() { "$@" || { tail -n 30 "$scratch/log"; return 1; }; }

# The tracked files, built for this machine's kernels and with the patches' tests alone.
configure() {
  local tests level
  tests=$(for room in $rooms; do created "$room"; done | sed -n 's|^tests/.*/\(.*\)\.cpp$|/\1|p' | paste -sd '|')
  level=$("$TROUPE" --version | sed -n 's/.*x86-64-\(v[234]\).*/\1/p')
  mkdir "$copy"
  git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
  (cd "$copy" && cmake --preset release "-DTROUPE_TESTS=($tests)[.]cpp" "-DTROUPE_ISA_LEVELS=$level") \
    >"$scratch/log" 2>&1
}
expect "a copy of the tree is configured" or_show configure

for room in $rooms; do
  echo "== $room: $(head -n 1 "tests/rooms/$room.patch")"
  files=$(created "$room" | grep -vc '^tests/' || true)
  tests=$(created "$room" | grep -c '^tests/' || true)
  expect "new files: $files, and $tests of tests" test "$files" -le 1 -a "$tests" -eq 1
  lines=$(elsewhere "$room")
  expect "lines elsewhere: $lines" at_most "$lines" 1
  if or_show apply "$room"; then
    program=$(told "$room" Program)
    start=$SECONDS
    expect "it builds" or_show build "$program"
    figure "seconds" $((SECONDS - start))
    BUILD=$copy/build expect "its tests pass" cases "${program#troupe_test_}" "$(told "$room" Cases)"
    expect "it can be taken back" or_show apply "$room" -R
  else
    expect "it applies" false
  fi
done
conclude
