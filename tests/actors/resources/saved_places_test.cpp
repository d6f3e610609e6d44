// Session::save and Save onto links, devices and pipes.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "serialization/safetensors.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/device.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::a_device;
using troupe::testing::TemporaryDir;
namespace fs = std::filesystem;

TEST_CASE("variables are saved and restored through links, and onto nothing that is no file") {
  const TemporaryDir dir;
  Graph g;
  const Variable v = variable(g, "v", 1.f);
  const Op raise = assign_add(v, ones(g, {}));
  Session s(g, one_thread());
  s.init();
  fs::create_symlink("target", dir.path("link"));
  s.save(dir.path("link"));
  CHECK(fs::is_symlink(dir.path("link")));
  CHECK(read_safetensors(dir.path("target"))->tensors.at("v").item<float>() == 1);
  s.run({}, {raise});
  s.restore(dir.path("link"));
  CHECK(s.run({v})[0].item<float>() == 1);
  REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
  const std::string device = a_device(dir);
  for (const std::string& path : {device, dir.path("pipe"), dir.path("")}) {
    const Status status = s.try_save(path);
    CHECK(status.code() == Code::failed_precondition);
    CHECK_MESSAGE(status.message().find("'" + path + "' is a") != std::string::npos,
                  status.message());
    CHECK(s.try_restore(path).code() == Code::failed_precondition);
  }
  CHECK(fs::is_character_file(device));
  CHECK(fs::is_fifo(dir.path("pipe")));
}

TEST_CASE("a node saves and restores through links, and onto nothing that is no file") {
  const TemporaryDir dir;
  Graph g;
  const Variable v = variable(g, "v", 1.f);
  const auto path = [&](const std::string& name) {
    return constant(g, Tensor::scalar<std::string>(dir.path(name)));
  };
  const Op saved = save(path("link"), {v}, {"v"}), refused = save(path("pipe"), {v}, {"v"});
  const Output restored =
      restore(path("link"), {"v"}, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0];
  Session s(g, one_thread());
  s.init();
  fs::create_symlink("target", dir.path("link.safetensors"));
  REQUIRE(::mkfifo(dir.path("pipe.safetensors").c_str(), 0600) == 0);
  s.run({}, {saved});
  CHECK(fs::is_symlink(dir.path("link.safetensors")));
  CHECK(read_safetensors(dir.path("target"))->tensors.at("v").item<float>() == 1);
  CHECK(s.run({restored})[0].item<float>() == 1);
  const Status status = s.try_run({}, {refused}).status();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(status.message().find("is a pipe") != std::string::npos);
  CHECK(dir.names() == std::vector<std::string>{"link.safetensors", "pipe.safetensors", "target"});
}
