// What is read from the log of NVIDIA's compiler, and what is refused.
#include "devices/cuda/resources.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/hash.hpp"
#include "tests/contains.hpp"

namespace troupe {
namespace {

using cuda::Resources;
using cuda::resources_of;
using test::contains;

// As CUDA 13.0 writes it.
const std::string kLog =
    "ptxas info    : 104 bytes gmem\n"
    "ptxas info    : Compiling entry function 'Plain' for 'sm_90'\n"
    "ptxas info    : Function properties for Plain\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 36 registers, used 0 barriers\n"
    "ptxas info    : Compile time = 58.915 ms\n"
    "ptxas info    : Compiling entry function 'Plainer' for 'sm_90'\n"
    "ptxas info    : Function properties for Plainer\n"
    "ptxas         .     32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Function properties for called\n"
    "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers, 40 bytes cumulative stack size, 17408 "
    "bytes smem, 368 bytes cmem[0]\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("CUDA: registers, spills, stack and shared memory are read from the compiler's log") {
  const Resources plain = resources_of(kLog, "Plain", "sm_90").value();
  CHECK(plain.registers == 36);
  CHECK(plain.spilled == 0);
  CHECK(plain.stack == 0);
  CHECK(plain.shared == 0);
  const Resources other = resources_of(kLog, "Plainer", "sm_90").value();
  CHECK(other.registers == 255);
  CHECK(other.spilled == 24);
  CHECK(other.stack == 40);
  CHECK(other.shared == 17408);
}

TEST_CASE("CUDA: what the compiler's log does not tell is an error, never 0") {
  const auto refused = [](const std::string& log, const char* function = "Plain") {
    const auto read = resources_of(log, function, "sm_90");
    REQUIRE_FALSE(read.ok());
    CHECK(read.status().code() == Code::data_loss);
    CHECK(contains(read.status().text(), "the compiler's log of"));
    return read.status().message();
  };
  CHECK(contains(refused(""), "nothing"));
  CHECK(contains(refused("no log"), "nothing"));
  CHECK(contains(refused(kLog, "Plai"), "nothing"));
  CHECK(contains(refused(kLog + kLog), "twice"));
  CHECK_FALSE(resources_of(kLog, "Plain", "sm_80").ok());
  CHECK(contains(refused(replaced(kLog, "Used 36 registers", "Used registers")), "no number"));
  CHECK(contains(refused(replaced(kLog, "Used 36 registers", "Used -36 registers")), "no number"));
  CHECK(contains(refused(replaced(kLog, "36 reg", "99999999999 reg")), "no number"));
  CHECK(contains(refused(replaced(kLog, "36 reg", "0 reg")), "0 registers"));
  CHECK(contains(refused(replaced(kLog, "Used 36 registers", "Used 36")), "0 numbers"));
  CHECK(contains(refused(replaced(kLog, "used 0 barriers", "used 7 registers")), "2 numbers"));
  CHECK(contains(refused(replaced(kLog, "0 bytes spill stores", "some spill stores")), "spilled"));
  CHECK(contains(refused(replaced(kLog, "0 bytes stack frame, ", "")), "spilled"));
}

TEST_CASE("CUDA: a log that was cut or changed is read or refused") {
  Random random(20);
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string log = kLog.substr(0, random.below(kLog.size() + 1));
    for (std::uint64_t k = random.below(4); k > 0 && !log.empty(); --k)
      log[random.below(log.size())] = char(random.below(256));
    const auto resources = resources_of(log, "Plain", "sm_90");
    if (!resources.ok()) continue;
    ++read;
    CHECK(resources->registers > 0);
  }
  CHECK(read > 200);
}

}  // namespace troupe
