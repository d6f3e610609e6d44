#!/usr/bin/env bash
# build_caf_tsan.sh PREFIX: builds libcaf_core with -fsanitize=thread from Debian's source package
# and installs headers and library into PREFIX. Says so on its last line when it cannot.
set -euo pipefail
prefix=$(mkdir -p "$1" && cd "$1" && pwd)
work=$prefix/src
mkdir -p "$work/lists/partial"
cd "$work"

# The machine's own sources, with deb-src instead of deb, in a list of our own: nothing of the
# system's configuration changes.
: >src.sources
for f in /etc/apt/sources.list.d/*.sources; do
  [[ -f $f ]] || continue
  # Debian's own archives only: others have no source package of CAF.
  awk 'BEGIN { RS = ""; ORS = "\n\n" } /debian-archive-keyring/ { gsub(/Types: *deb( |\n)/, "Types: deb-src\n"); print }' \
    "$f" >>src.sources
done
{ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
  { grep -E '^deb .*debian' || true; } | sed 's/^deb /deb-src /' >src.list

mkdir -p parts
cp src.sources parts/
cp src.list parts/
apt=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/parts"
     -o "Dir::State::Lists=$work/lists" -o APT::Sandbox::User=root)
# Debian's own patches are not needed, so the upstream tarball alone is success.
apt-get "${apt[@]}" update
apt-get "${apt[@]}" source --download-only --tar-only actor-framework || true
if ! ls actor-framework_*.orig.tar.* >/dev/null 2>&1; then
  echo "the source package actor-framework cannot be had from this machine's apt sources"
  exit 1
fi
rm -rf tree && mkdir tree
tar -xf actor-framework_*.orig.tar.* -C tree --strip-components=1

cmake -S tree -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_FLAGS="-fsanitize=thread -O1 -g1 -w" -DCMAKE_SHARED_LINKER_FLAGS=-fsanitize=thread \
  -DCMAKE_CXX_STANDARD=17 -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCAF_ENABLE_TESTING=OFF -DCAF_ENABLE_EXAMPLES=OFF -DCAF_ENABLE_TOOLS=OFF \
  -DCAF_ENABLE_IO_MODULE=OFF -DCAF_ENABLE_OPENSSL_MODULE=OFF \
  -DCAF_NO_UNIT_TESTS=ON -DCAF_NO_EXAMPLES=ON -DCAF_NO_TOOLS=ON -DCAF_NO_IO=ON \
  -DCAF_NO_OPENSSL=ON -DCAF_NO_PYTHON=ON
ninja -C build install
rm -rf tree build lists parts
echo "installed into $prefix"
