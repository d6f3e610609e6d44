#include "core/name.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/hash.hpp"

using namespace troupe;

namespace {

DeviceName device(std::string_view text) {
  auto parsed = DeviceName::parse(text);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().text());
  return *parsed;
}
bool refused(std::string_view text) {
  auto parsed = DeviceName::parse(text);
  return !parsed.ok() && parsed.status().code() == Code::invalid_argument;
}

}  // namespace

TEST_CASE("node names have a small alphabet") {
  for (auto good : {"a", "A1", "7", ".x", "layer1/matmul", "a_b.c-d/e"})
    CHECK(valid_node_name(good));
  for (auto bad : {"", "_a", "/a", "-a", "^a", "a:0", "a b", "a\n", "a\\b", "\xc3\xa9"})
    CHECK_FALSE(valid_node_name(bad));
  CHECK(valid_node_name(std::string(1024, 'a')));
  CHECK_FALSE(valid_node_name(std::string(1025, 'a')));
  CHECK_FALSE(valid_node_name(std::string_view("a\0b", 3)));
}

TEST_CASE("a port name is node, node:port or ^node") {
  CHECK(PortName::parse("a/b").value() == PortName{"a/b", 0, false});
  CHECK(PortName::parse("a:0").value() == PortName{"a", 0, false});
  CHECK(PortName::parse("a:17").value() == PortName{"a", 17, false});
  CHECK(PortName::parse("^a").value() == PortName{"a", 0, true});
  for (auto text : {"a", "a:3", "^a"}) CHECK(PortName::parse(text).value().text() == text);
  CHECK(PortName::parse("a:0").value().text() == "a");
  for (auto bad : {"", "^", ":0", "a:", "a:-1", "a:+1", "a:1x", "a: 1", "a:01", "a:1:2",
                   "a:4294967296", "a:2147483648", "^a:0", "^^a", "a b"})
    CHECK_MESSAGE(!PortName::parse(bad).ok(), bad);
}

TEST_CASE("a device name reads its parts in any order") {
  DeviceName full{"worker", 1, "CPU", 0};
  CHECK(device("/job:worker/task:1/cpu:0") == full);
  CHECK(device("/cpu:0/task:1/job:worker") == full);
  CHECK(device("/job:worker/replica:0/task:1/device:CPU:0") == full);
  CHECK(device("/job:worker/task:1/device:cpu:0") == full);
  CHECK(full.full());
  CHECK(full.text() == "/job:worker/task:1/cpu:0");
}

TEST_CASE("short and partial device names are patterns") {
  CHECK(device("").empty());
  CHECK(device("CPU:0") == DeviceName{{}, {}, "CPU", 0});
  CHECK(device("gpu:1") == DeviceName{{}, {}, "CUDA", 1});
  CHECK(device("/gpu:1") == device("/cuda:1"));
  CHECK(device("/device:GPU:1") == device("/cuda:1"));
  CHECK(device("/fake:0").type == "FAKE");
  CHECK(device("/device:TPU:3").type == "TPU");
  CHECK(device("/job:ps") == DeviceName{"ps", {}, {}, {}});
  CHECK(device("/cpu:*") == DeviceName{{}, {}, "CPU", {}});
  CHECK(device("/device:CPU") == device("/cpu:*"));
  CHECK(device("/device:*:2") == DeviceName{{}, {}, {}, 2});
  CHECK(device("/job:*/replica:*/task:*/device:*:*").empty());
  CHECK_FALSE(device("/job:ps/task:0").full());
}

TEST_CASE("junk in a device name is refused") {
  for (auto bad : {"/",
                   "//",
                   "/cpu:0/",
                   "cpu",
                   "cpu:",
                   "/cpu",
                   "/cpu:",
                   "/cpu:-1",
                   "/cpu:+1",
                   "/cpu:0x1",
                   "/cpu:01",
                   "/cpu:0 ",
                   " /cpu:0",
                   "/cpu:99999999999",
                   "/cpu:0:1",
                   "/job:",
                   "/job:a b",
                   "/job:1a",
                   "/job:a:b",
                   "/task:",
                   "/task:one",
                   "/task:-2",
                   "/replica:1",
                   "/rack:3",
                   "/tpu:0",
                   "/device:",
                   "/device::0",
                   "/device:CPU:",
                   "/device:CPU:0:0",
                   "/device:C*:0",
                   "/cpu:0/cpu:0",
                   "/cpu:0/gpu:*",
                   "/job:a/job:a",
                   "/task:1/task:1",
                   "/cpu:0junk",
                   "/cpu:0/junk",
                   "job:worker",
                   "task:1",
                   "CPU:0/task:1"})
    CHECK_MESSAGE(refused(bad), bad);
  CHECK(refused(std::string_view("/cpu:0\0", 7)));
  CHECK(refused(std::string(1 << 16, '/')));
}

TEST_CASE("random text never confuses the device parser") {
  std::uint64_t seed = 3;
  INFO("seed ", seed);
  Random random(seed);
  const std::vector<std::string> pieces = {"/", ":", "job", "task", "cpu",    "device", "replica",
                                           "*", "0", "1",   "gpu",  "worker", "-",      " "};
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = random.below(9); n > 0; --n) text += pieces[random.below(pieces.size())];
    auto parsed = DeviceName::parse(text);
    if (!parsed.ok()) continue;
    ++accepted;
    // What was understood prints as something that is understood the same way.
    CHECK(device(parsed->text()) == *parsed);
  }
  CHECK(accepted > 100);
}

TEST_CASE("a pattern matches when every part it has agrees") {
  DeviceName full = device("/job:worker/task:1/gpu:2");
  for (auto yes : {"", "/job:worker", "/task:1", "/gpu:*", "/gpu:2", "/job:worker/task:1/gpu:2"})
    CHECK(device(yes).matches(full));
  for (auto no : {"/job:ps", "/task:2", "/cpu:*", "/gpu:1", "/job:worker/task:1/gpu:3"})
    CHECK_FALSE(device(no).matches(full));
}

TEST_CASE("device names merge into their conjunction") {
  auto merge = [](auto a, auto b, bool soft = false) {
    return DeviceName::merge(device(a), device(b), soft);
  };
  CHECK(merge("/job:worker", "/gpu:1")->text() == "/job:worker/cuda:1");
  CHECK(merge("/gpu:*", "/gpu:1")->text() == "/cuda:1");
  CHECK(merge("", "/task:3")->text() == "/task:3");
  auto bad = merge("/job:a/cpu:0", "/job:b/cpu:0");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.status().message() == "devices '/job:a/cpu:0' and '/job:b/cpu:0' differ in job");
  CHECK_FALSE(merge("/task:0", "/task:1").ok());
  CHECK_FALSE(merge("/cpu:0", "/gpu:0").ok());
  CHECK_FALSE(merge("/cpu:0", "/cpu:1").ok());
}

TEST_CASE("soft merging gives up type and index, never job and task") {
  auto soft = [](auto a, auto b) { return DeviceName::merge(device(a), device(b), true); };
  CHECK(soft("/job:w/cpu:0", "/gpu:0")->text() == "/job:w");
  CHECK(soft("/job:w/cpu:0", "/cpu:1")->text() == "/job:w/cpu:*");
  CHECK_FALSE(soft("/job:a", "/job:b").ok());
  CHECK_FALSE(soft("/task:1/cpu:0", "/task:2/gpu:0").ok());
}

TEST_CASE("devices sort with numbers as numbers") {
  std::vector<DeviceName> names;
  for (auto text : {"/job:b/task:0/cpu:0", "/job:a/task:10/cpu:0", "/job:a/task:2/gpu:10",
                    "/job:a/task:2/gpu:2", "/job:a/task:2/cpu:0"})
    names.push_back(device(text));
  std::sort(names.begin(), names.end());
  std::vector<std::string> sorted;
  for (auto& n : names) sorted.push_back(n.text());
  CHECK(sorted == std::vector<std::string>{"/job:a/task:2/cpu:0", "/job:a/task:2/cuda:2",
                                           "/job:a/task:2/cuda:10", "/job:a/task:10/cpu:0",
                                           "/job:b/task:0/cpu:0"});
  CHECK((device("/cpu:0") <=> device("/cpu:0")) == 0);
}

TEST_CASE("near names are what was probably meant") {
  std::vector<std::string> known = {"MatMul", "Mul", "MaxPool", "Softmax", "LogSoftmax", "Add"};
  CHECK(near_names("Matmul", known) == std::vector<std::string>{"MatMul"});
  CHECK(near_names("SoftMax", known).front() == "Softmax");
  CHECK(near_names("MatMull", known).front() == "MatMul");
  CHECK(near_names("Convolution", known).empty());
  CHECK(near_names("", known).empty());
  CHECK(near_names("x", {}).empty());
  std::vector<std::string> many = {"w1", "w2", "w3", "w4"};
  CHECK(near_names("w5", many, 2) == std::vector<std::string>{"w1", "w2"});
}
