#!/bin/sh
# What someone does with the packages in /packages of a bare Debian, as root there (tests/test_packages.py): install them,
# run an example, build an embedder and a driver two ways, test the driver, purge everything. Fails at the first surprise.
set -eu
say() { printf '== %s\n' "$*"; }
all_files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var -o -path /packages \) -prune -o -print | sort; }
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
unset HALYARD_DRIVER_PATH || true

# Built for an older Debian, a package may need a library that this one no longer has.
for file in /packages/*.deb; do
  if ! apt-get -s install /packages/libhalyard0_*.deb /packages/halyard-tools_*.deb /packages/libhalyard-dev_*.deb "$file" >/tmp/apt.log 2>&1; then
    say "not installable here: $(basename "$file"): $(sed -n 's/.*Depends: \([^ ]*\).*/\1/p' /tmp/apt.log | tail -n 1)"
    case $(basename "$file") in libhalyard0_* | halyard-tools_* | libhalyard-dev_* | halyard-vulkan_*) exit 1 ;; esac
    rm "$file"
  fi
done

# What the packages need, so that the time below is theirs alone, and what a developer has.
needed=$(apt-get -s install /packages/*.deb | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -v -E '^(libhalyard|halyard-|python3-halyard)')
apt-get -q -y --no-install-recommends install $needed gcc libc6-dev cmake ninja-build pkg-config >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }
all_files >/tmp/before

say "install"
start=$(date +%s%N)
apt-get -q -y --no-install-recommends install /packages/libhalyard0_*.deb /packages/halyard-tools_*.deb >/tmp/apt.log 2>&1 ||
  { tail /tmp/apt.log; exit 1; }
vm-run --device=local-sync --module=/usr/share/doc/halyard/examples/elementwise_mul.vmasm --function=mul \
  --input=8xf32=1,2,3,4,5,6,7,8 --input=8xf32=10 | tee /tmp/result
printf '== from apt install to a result: %d ms\n' $((($(date +%s%N) - start) / 1000000))
grep -qx '8xf32=10 20 30 40 50 60 70 80' /tmp/result

test -e /usr/share/doc/halyard/docs/install.md
grep -q '^ExecStart="/usr/bin/vm-serve"' /usr/lib/systemd/system/halyard-serve.service
apt-get -q -y --no-install-recommends install /packages/*.deb >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }

say "tools"
hal-info >/tmp/info
grep -q local /tmp/info
tools="vm-run vm-serve vm-check vm-diff vm-dump vm-as vm-cc hal-info hal-cts"
if [ -e /packages/halyard-remote_*.deb ]; then tools="$tools vm-device"; fi
if [ -e /packages/halyard-bench_*.deb ]; then tools="$tools vm-bench"; fi
for tool in $tools; do
  "$tool" --help >/dev/null
  test -e "/usr/share/man/man1/$tool.1.gz"
  test -e "/usr/share/bash-completion/completions/$tool"
done
test -e /usr/share/man/man1/vulkan-pack.1.gz
if [ -e /usr/lib/python3/dist-packages/halyard ]; then
  say "python"
  python3 - <<'PYTHON'
import importlib.metadata
import halyard
assert importlib.metadata.version("halyard") == halyard.__version__
text = open("/usr/share/doc/halyard/examples/fib.vmasm").read()
print(halyard.load(halyard.assemble(text)).recursive(20))
PYTHON
fi

say "an embedder, by pkg-config and by find_package"
mkdir -p /tmp/embedder && cd /tmp/embedder
cat >program.c <<'C'
#include <halyard/halyard.h>
#include <stdio.h>
int main(void) { return puts(halyard_status_code_name(HALYARD_NOT_FOUND)) < 0; }
C
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(embedder C)
find_package(Halyard REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE Halyard::halyard)
CMAKE
cc program.c $(pkg-config --cflags --libs halyard) -o by-hand
test "$(./by-hand)" = NOT_FOUND
cmake -G Ninja -S . -B b >cmake.log
cmake --build b >>cmake.log
test "$(b/program)" = NOT_FOUND

say "a driver, by find_package and by pkg-config"
cp -r /usr/share/halyard/examples/driver-null /tmp/driver && cd /tmp/driver
cmake -G Ninja -S . -B b >cmake.log
cmake --build b >>cmake.log
mkdir by-hand
cc -std=c11 -shared -fPIC $(pkg-config --cflags halyard-driver) null.c $(pkg-config --libs halyard-driver) \
  -o by-hand/halyard-driver-null.so
hal-cts --driver="$PWD/by-hand/halyard-driver-null.so" | tail -n 1
hal-cts --driver="$(find "$PWD/b" -name halyard-driver-null.so)" | tail -n 1

say "purge"
cd /
apt-get -q -y purge $(cd /packages && for file in *.deb; do echo "${file%%_*}"; done) >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }
all_files >/tmp/after
diff /tmp/before /tmp/after
say "clean"
