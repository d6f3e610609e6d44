// PyTorch and TensorFlow as yardsticks, where they are not there, and where MKL would slow it down.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/bench/kernel_bench.hpp"
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
  CHECK_MESSAGE(contains(other.err, "of the groups executor, input, step and train"), other.err);
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

namespace {

// A module of Python of that name, version 9.9, in which everything is there and does nothing.
std::string python_module(const std::string& name, const std::string& more = "") {
  return R"(
import sys, types
class Any:
    def __init__(self, *a, **k): pass
    def __call__(self, *a, **k): return sum(range(100)) and self
    def __getattr__(self, name): return Any()
    def __getitem__(self, i): return Any()
    def __iter__(self): return iter((Any(), Any()))
    def __enter__(self): return self
    def __exit__(self, *a): return False
    __add__ = __sub__ = __mul__ = __matmul__ = __call__
class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return Any()
me = Module(")" +
         name + "\")\nme.__version__ = \"9.9\"\nsys.modules[\"" + name + "\"] = me\n" + more;
}

// As much of PyTorch as the script asks for.
const std::string kTorch = python_module("torch", R"(
me.nn = Module("torch.nn")
me.nn.functional = Module("torch.nn.functional")
me.backends = types.SimpleNamespace(mkl=types.SimpleNamespace(is_available=lambda: True))
me.__path__ = []
me.__file__ = __file__
sys.modules["torch.nn"] = me.nn
sys.modules["torch.nn.functional"] = me.nn.functional
)");

std::vector<nlohmann::json> lines_of(const Ended& ended) {
  std::istringstream text(ended.out);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("a figure of PyTorch with MKL names the path that MKL took") {
  TemporaryDir dir;
  dir.write("torch.py", kTorch);
  const std::string run = "echo 0.01 | PYTHONPATH=" + dir.path() + " python3 " + source_dir() +
                          "/apps/bench/torch_peer.py mlp 1";
  Ended plain = shell_command(run + " --plain"), tuned = shell_command(run);
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  const bool intel = shell_command("grep -q GenuineIntel /proc/cpuinfo").code == 0;
  const bool cc = shell_command("command -v cc").code == 0;
  CHECK(lines_of(plain).at(0)["torch"] == "9.9");
  CHECK(lines_of(plain).at(0)["mkl"] == (intel ? "" : "slow path"));
  CHECK(lines_of(tuned).at(0)["mkl"] == (intel ? "" : cc ? "fast path preloaded" : "slow path"));
}

TEST_CASE("a peer's script times as many rounds as it is asked for") {
  TemporaryDir dir;
  dir.write("torch.py", kTorch);
  Ended ended = shell_command("printf '0.01\\n0.02\\n0.01\\n' | PYTHONPATH=" + dir.path() +
                              " python3 " + source_dir() + "/apps/bench/torch_peer.py mlp 1");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto lines = lines_of(ended);
  REQUIRE(lines.size() == 4);
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK(lines[i]["ms"] <= lines[i]["p99"]);
}

TEST_CASE("one script times the kernels that it is asked for, and refuses others") {
  TemporaryDir dir;
  dir.write("torch.py", kTorch);
  const auto time = [&](const std::string& lines) {
    return shell_command("printf '" + lines + "' | PYTHONPATH=" + dir.path() + " python3 " +
                         source_dir() + "/apps/bench/torch_peer.py kernels 1 --plain");
  };
  Ended ended = time("sin 0.01\\nsin 0.01\\nlayer_norm 0.01\\n");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto lines = lines_of(ended);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["torch"] == "9.9");
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK(lines[i]["ms"] <= lines[i]["p99"]);
  Ended unknown = time("no_kernel 0.01\\n");
  CHECK(unknown.code != 0);
  CHECK(contains(unknown.err, "no_kernel"));
}

namespace {

// Of each three rounds, the peer's value is the smallest median, the ratio that of the rounds.
// Returns how many peers there are.
int check_beside_the_fastest(const nlohmann::json& row) {
  auto rounds = [&](const std::string& key) {
    std::istringstream text(row[key].get<std::string>());
    return std::vector<double>(std::istream_iterator<double>(text), {});
  };
  auto middle = [](std::vector<double> values) {
    REQUIRE(values.size() == 3);
    std::sort(values.begin(), values.end());
    return values[1];
  };
  auto near = [](double value) { return doctest::Approx(value).epsilon(0.05); };
  const std::string peer = row["peer"];
  const auto ours = rounds("rounds"), theirs = rounds("rounds of " + peer);
  CHECK(row["value"].get<double>() == near(middle(ours)));
  CHECK(row["peer_value"].get<double>() == near(middle(theirs)));
  CHECK(row["ratio"].get<double>() ==
        near(middle({ours[0] / theirs[0], ours[1] / theirs[1], ours[2] / theirs[2]})));
  int peers = 0;
  for (const auto& [key, _] : row.items()) {
    if (!contains(key, "rounds of ")) continue;
    CHECK(middle(theirs) <= middle(rounds(key)));
    ++peers;
  }
  return peers;
}

void check_beside_tensorflow(const std::string& row) {
  TemporaryDir dir;
  dir.write("tensorflow.py", python_module("tensorflow"));
  Ended ended = shell_command("PYTHONPATH=" + dir.path() + " " + troupe_program() + " bench " +
                              row + " --peer tensorflow --rounds 3 --quiet --output json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  REQUIRE(ended.json().size() == 1);
  CHECK(contains(ended.json().at(0)["peer"].get<std::string>(), "tensorflow 9.9"));
  CHECK(check_beside_the_fastest(ended.json().at(0)) == 2);
}

}  // namespace

TEST_CASE("a training step stands beside the fastest peer [slow]") {
  TemporaryDir dir;
  dir.write("torch.py", kTorch);
  Ended ended = shell_command("PYTHONPATH=" + dir.path() + " " + troupe_program() +
                              " bench train --only train.mlp.t1 --threads 1 --peer torch " +
                              "--rounds 3 --quiet --output json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const auto row = ended.json().at(0);
  CHECK(contains(row["peer"].get<std::string>(), "torch 9.9"));
  CHECK(check_beside_the_fastest(row) >= 1);
}

TEST_CASE("rows of a GPU stand beside a PyTorch that sees it, and no other") {
  const auto bench = [](const std::string& row, const std::string& gpu) {
    TemporaryDir dir;
    dir.write("torch.py", kTorch + R"(
me.backends.cuda = me.backends.cudnn = Any()
me.cuda = types.SimpleNamespace(synchronize=lambda: None, get_device_name=lambda: "no GPU",
                                is_available=lambda: )" +
                              gpu + ")\n");
    return shell_command(
        "TROUPE_CUDA_CACHE=- TROUPE_CUDA_PATH=" + build_dir() + "/fake-cuda:" + build_dir() +
        "/fake-nvrtc:- PYTHONPATH=" + dir.path() + " " + troupe_program() +
        " bench gpu --peer torch --rounds 1 --quiet --only " + row + " --output json");
  };
  Ended none = bench("gpu.train.mlp", "False");
  CHECK(none.code == 1);
  CHECK_MESSAGE(contains(none.out, "has a torch that sees a GPU"), none.out);
  for (const std::string row : {"gpu.train.mlp", "gpu.matmul.bf16"}) {
    Ended beside = bench(row, "True");
    REQUIRE_MESSAGE(beside.code == 0, beside.out);
    const auto found = beside.json().at(0);
    CHECK(found["peer"] == "torch 9.9 on no GPU");
    CHECK(found["ratio"].get<double>() ==
          doctest::Approx(found["value"].get<double>() / found["peer_value"].get<double>()));
  }
}

TEST_CASE(
    "every kernel beside PyTorch is one of the script's operations, and the other way round") {
  std::set<std::string> ours;
  for (const troupe::KernelRow& row : troupe::kernel_rows({}))
    if (!row.peer.empty()) ours.insert(row.peer);
  Ended ended = python("import torch_kernels as k; print(*k.KERNELS)");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  std::istringstream names(ended.out);
  CHECK(ours == std::set<std::string>(std::istream_iterator<std::string>(names), {}));
}

TEST_CASE("a kernel stands beside the fastest peer, in turns [slow]") {
  TemporaryDir dir;
  dir.write("torch.py", kTorch);
  for (const char* row : {"kernels.erf.t1", "kernels.layer_norm.t2", "kernels.matmul_bf16.t1"}) {
    CAPTURE(row);
    Ended ended = shell_command("PYTHONPATH=" + dir.path() + " " + troupe_program() +
                                " bench kernels --only " + row +
                                " --peer torch --rounds 3 --quiet --output json");
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    REQUIRE(ended.json().size() == 1);
    CHECK(ended.json().at(0)["unit"] == "ms");
    CHECK(contains(ended.json().at(0)["peer"].get<std::string>(), "torch 9.9"));
    CHECK(check_beside_the_fastest(ended.json().at(0)) >= 1);
  }
}

TEST_CASE("a step stands beside the fastest mode of a peer, in turns") {
  check_beside_tensorflow("step --only step.local.p50");
}

TEST_CASE("a loop stands beside the fastest mode of a peer, in turns [slow]") {
  check_beside_tensorflow("executor --only executor.loop.count");
}

TEST_CASE("a peer's script that fails ends the benchmark with its command") {
  TemporaryDir dir;  // with a torch that can be imported, and no more
  dir.write("torch.py", "import sys\nsys.modules['torch.nn'] = sys.modules['torch']\n");
  Ended ended = shell_command("PYTHONPATH=" + dir.path() + " " + troupe_program() +
                              " bench train --only train.mlp.t1 --threads 1 --peer torch");
  CHECK(ended.code == 1);
  CHECK_MESSAGE(contains(last_line(ended.err), "torch_peer.py mlp 1' ended early: "), ended.err);
  CHECK_MESSAGE(contains(last_line(ended.err), "Error: "), ended.err);  // of Python
}
