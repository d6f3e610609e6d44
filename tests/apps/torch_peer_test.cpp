// PyTorch and TensorFlow as yardsticks, where they are not there, and where MKL would slow it down.
#include <doctest/doctest.h>

#include "tests/apps/command.hpp"
#include "tests/serialization/temporary.hpp"

using troupe::testing::TemporaryDir;

namespace {

// A line of Python that knows our script as `torch_peer`.
Ended python(const std::string& line) {
  return shell_command("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + source_dir() +
                       "/apps/bench python3 -c '" + line + "'");
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

TEST_CASE("without PyTorch the benchmark beside it says so, and how to get it") {
  TemporaryDir dir;  // with a torch that cannot be imported
  dir.write("torch.py", "raise ImportError('for a test')\n");
  const std::string bench =
      "PYTHONPATH=" + dir.path() + " " + troupe_program() + " bench train --peer torch";
  Ended text = shell_command(bench);
  CHECK(text.code == 1);
  CHECK_MESSAGE(contains(last_line(text.err), "apt install python3-torch"), text.err);
  Ended json = shell_command(bench + " --output json");
  CHECK(json.code == 1);
  CHECK_MESSAGE(contains(last_line(json.out), "apt install python3-torch"), json.out);
  CHECK(json.json()["code"] == "not_found");
}

TEST_CASE("without TensorFlow the benchmark beside it says so, and how to get it") {
  TemporaryDir dir;
  dir.write("tensorflow.py", "raise ImportError('for a test')\n");
  const std::string bench = "PYTHONPATH=" + dir.path() + " " + troupe_program() + " bench ";
  for (const char* group : {"train", "step", "executor"}) {
    Ended text = shell_command(bench + group + " --peer tensorflow");
    CHECK(text.code == 1);
    CHECK_MESSAGE(contains(last_line(text.err), "tensorflow-cpu"), text.err);
  }
  Ended other = shell_command(bench + "channel --peer tensorflow");
  CHECK(other.code == 2);
  CHECK_MESSAGE(contains(other.err, "of the groups executor, step and train"), other.err);
}

TEST_CASE("a library that tells MKL to take its fast path is made with a C compiler") {
  CHECK(python("import torch_peer as t; assert t.intel(\"vendor_id : GenuineIntel\")").code == 0);
  CHECK(python("import torch_peer as t; assert not t.intel(\"vendor_id : AuthenticAMD\")").code ==
        0);
  TemporaryDir dir;
  Ended none = python("import torch_peer as t; assert t.make_fast_path(\"" + dir.path() +
                      "\", \"no-such-compiler\") is None");
  CHECK_MESSAGE(none.code == 0, none.err);
  if (shell_command("command -v cc").code != 0) {
    MESSAGE("skipped: no cc");
    return;
  }
  Ended made = python("import ctypes, torch_peer as t; assert ctypes.CDLL(t.make_fast_path(\"" +
                      dir.path() + "\")).mkl_serv_intel_cpu_true() == 1");
  CHECK_MESSAGE(made.code == 0, made.err);
}

TEST_CASE("a figure of PyTorch with MKL names the path that MKL took") {
  // As much of PyTorch as the script asks for.
  TemporaryDir dir;
  dir.write("torch.py", R"(
import sys, types
class Any:
    def __init__(self, *a, **k): pass
    def __call__(self, *a, **k): return self
    def __getattr__(self, name): return Any()
class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return Any()
me = Module("torch")
me.__version__ = "9.9"
me.nn = Module("torch.nn")
me.nn.functional = Module("torch.nn.functional")
me.backends = types.SimpleNamespace(mkl=types.SimpleNamespace(is_available=lambda: True))
me.__path__ = []
sys.modules["torch"] = me
sys.modules["torch.nn"] = me.nn
sys.modules["torch.nn.functional"] = me.nn.functional
)");
  const std::string run = "PYTHONPATH=" + dir.path() + " python3 " + source_dir() +
                          "/apps/bench/torch_peer.py mlp 1 0.01";
  Ended plain = shell_command(run + " --plain"), tuned = shell_command(run);
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  const bool intel = shell_command("grep -q GenuineIntel /proc/cpuinfo").code == 0;
  const bool cc = shell_command("command -v cc").code == 0;
  CHECK(plain.json()["torch"] == "9.9");
  CHECK(plain.json()["mkl"] == (intel ? "" : "slow path"));
  CHECK(tuned.json()["mkl"] == (intel ? "" : cc ? "fast path preloaded" : "slow path"));
}
