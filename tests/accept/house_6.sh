#!/usr/bin/env bash
# an extension of each kind is one new file and at most one line elsewhere (tests/rooms/)
source tests/accept/lib.sh
# ROOMS: only those patches, by name. NEXT stands for the first number that no message has.
rooms=${ROOMS:-$(basename -as .patch tests/rooms/*.patch)}

# created PATCH: the files that it adds. elsewhere PATCH: the lines that it adds to or takes from
# others, but for what `troupe-gen` writes.
created() { git apply --summary "tests/rooms/$1.patch" | awk '$1 == "create" { print $4 }'; }
elsewhere() {
  git apply --numstat "tests/rooms/$1.patch" |
    awk -v created="$(created "$1")" '
      BEGIN { n = split(created, names, "\n"); for (i = 1; i <= n; ++i) mine[names[i]] }
      !($3 in mine) && $3 !~ /^(ops\/api\/|docs\/ops[.]md$)/ { lines += $1 > $2 ? $1 : $2 }
      END { print lines + 0 }'
}
next=$(git grep -hoE '^struct MessageAt<[0-9]+>' serialization/messages | wc -l)
apply() {
  sed "s/MessageAt<NEXT>/MessageAt<$next>/" "tests/rooms/$1.patch" | change_copy "${@:2}"
}

tests=$(for room in $rooms; do created "$room"; done | sed -n 's|^tests/.*/\(.*\)\.cpp$|/\1|p' | paste -sd '|')
expect "a copy of the tree is configured" or_show make_copy "($tests)[.]cpp"

for room in $rooms; do
  echo "== $room: $(head -n 1 "tests/rooms/$room.patch")"
  files=$(created "$room" | grep -vc '^tests/' || true)
  tests=$(created "$room" | grep -c '^tests/' || true)
  expect "new files: $files, and $tests of tests" test "$files" -le 1 -a "$tests" -eq 1
  lines=$(elsewhere "$room")
  expect "lines elsewhere: $lines" at_most "$lines" 1
  if or_show apply "$room"; then
    program=$(told "tests/rooms/$room.patch" Program)
    start=$SECONDS
    expect "it builds" or_show build_copy "$program"
    figure "seconds" $((SECONDS - start))
    BUILD=$copy/build expect "its tests pass" cases "${program#troupe_test_}" "$(told "tests/rooms/$room.patch" Cases)"
    expect "it can be taken back" or_show apply "$room" -R
  else
    expect "it applies" false
  fi
done
conclude
