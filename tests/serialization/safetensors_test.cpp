#include "serialization/safetensors.hpp"

#include <doctest/doctest.h>

#include <random>

#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

Safetensors random_content(Values& v) {
  Safetensors out;
  for (std::uint64_t i = v.below(6); i > 0; --i) {
    Tensor t = v.tensor();
    if (safetensors_holds(t.dtype())) out.tensors.emplace("layer/" + v.word(), t);
  }
  for (std::uint64_t i = v.below(3); i > 0; --i) out.metadata.emplace(v.word(), v.word());
  return out;
}

void check_same(const Safetensors& a, const Safetensors& b) {
  CHECK(a.metadata == b.metadata);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    REQUIRE(b.tensors.count(name) == 1);
    CHECK(Tensor::same(tensor, b.tensors.at(name)));
  }
}

// A file with this header and that many bytes of data.
std::string file_of(std::string header, std::size_t data, std::uint64_t claim = 0) {
  std::uint64_t size = claim ? claim : header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data, '\1');
}

}  // namespace

TEST_CASE("tensors survive a safetensors file") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  TemporaryDir dir;
  for (int i = 0; i < 10; ++i) {
    Safetensors content = random_content(v);
    REQUIRE(write_safetensors(dir.path("t"), content).ok());
    auto back = read_safetensors(dir.path("t"));
    REQUIRE(back.ok());
    check_same(*back, content);
  }
  CHECK(dir.names() == std::vector<std::string>{"t"});
}

TEST_CASE("a safetensors file has the bytes that other programs expect") {
  TemporaryDir dir;
  Safetensors content;
  content.tensors.emplace("b", Tensor::of<std::uint8_t>({1}, {7}));
  content.tensors.emplace("w", Tensor::of<float>({1, 2}, {1.f, -2.f}));
  content.metadata["format"] = "pt";
  REQUIRE(write_safetensors(dir.path("t"), content).ok());
  std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(dir.read("t") == file_of(header, 0) + std::string("\0\0\x80\x3f\0\0\0\xc0\7", 9));
}

TEST_CASE("a file written elsewhere, with its fields in another order, is read") {
  TemporaryDir dir;
  dir.write("t", file_of(R"( {"x":{"data_offsets":[0,2],"shape":[2],"dtype":"I8"}})", 2));
  CHECK(!read_safetensors(dir.path("t")).ok());  // a blank before the brace
  dir.write("t", file_of(R"({"x":{"data_offsets":[0,2],"shape":[2],"dtype":"I8"},)"
                         R"("__metadata__":{"a":"b"}}   )",
                         2));
  auto back = read_safetensors(dir.path("t"));
  REQUIRE(back.ok());
  CHECK(Tensor::same(back->tensors.at("x"), Tensor::of<std::int8_t>({2}, {1, 1})));
  CHECK(back->metadata.at("a") == "b");
}

TEST_CASE("what safetensors cannot hold is invalid_argument and leaves no file") {
  TemporaryDir dir;
  auto code = [&](const std::string& name, Tensor t) {
    Safetensors content;
    content.tensors.emplace(name, std::move(t));
    return write_safetensors(dir.path("t"), content).code();
  };
  CHECK(code("s", Tensor::scalar("text")) == Code::invalid_argument);
  CHECK(code("nothing", Tensor{}) == Code::invalid_argument);
  CHECK(code("__metadata__", Tensor::scalar(1.f)) == Code::invalid_argument);
  CHECK(code("\xff", Tensor::scalar(1.f)) == Code::invalid_argument);
  CHECK(dir.names().empty());
}

TEST_CASE("hostile safetensors headers are data_loss") {
  TemporaryDir dir;
  const std::pair<std::string, std::string> kFiles[] = {
      {"empty", ""},
      {"short", "1234567"},
      {"header beyond the file", file_of("{}", 0, 1000)},
      {"header of 2^64 - 1", file_of("{}", 0, ~std::uint64_t{0})},
      {"no JSON", file_of("{]", 0)},
      {"two documents", file_of("{}{}", 0)},
      {"no object", file_of("[]", 0)},
      {"data without an entry", file_of("{}", 4)},
      {"unknown dtype over others",
       file_of(R"({"x":{"dtype":"F7","shape":[1],"data_offsets":[0,4]},)"
               R"("y":{"dtype":"I8","shape":[1],"data_offsets":[3,4]}})",
               4)},
      {"unknown dtype, backwards",
       file_of(R"({"x":{"dtype":"F7","shape":[1],"data_offsets":[4,0]}})", 4)},
      {"unknown dtype, a part of the file",
       file_of(R"({"x":{"dtype":"F7","shape":[1],"data_offsets":[0,3]}})", 4)},
      {"missing field", file_of(R"({"x":{"dtype":"F32","shape":[1]}})", 4)},
      {"unknown field",
       file_of(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"y":"z"}})", 4)},
      {"field twice",
       file_of(R"({"x":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4)},
      {"name twice", file_of(R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                             R"("x":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
                             2)},
      {"overlap", file_of(R"({"x":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                          R"("y":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}})",
                          3)},
      {"hole", file_of(R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})", 2)},
      {"backwards", file_of(R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[2,1]}})", 2)},
      {"beyond the end", file_of(R"({"x":{"dtype":"I8","shape":[9],"data_offsets":[0,9]}})", 2)},
      {"wrong count", file_of(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", 4)},
      {"huge shape", file_of(R"({"x":{"dtype":"F64","shape":[4611686018427387904,4],)"
                             R"("data_offsets":[0,0]}})",
                             0)},
      {"huge number",
       file_of(R"({"x":{"dtype":"I8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1)},
      {"negative", file_of(R"({"x":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}})", 1)},
      {"rank 9",
       file_of(R"({"x":{"dtype":"I8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1)},
      {"three offsets", file_of(R"({"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1,1]}})", 1)},
      {"a list for the dtype",
       file_of(R"({"x":{"dtype":[1],"shape":[1],"data_offsets":[0,1]}})", 1)},
      {"metadata of lists", file_of(R"({"__metadata__":{"shape":[1]}})", 0)},
      {"metadata of numbers", file_of(R"({"__metadata__":{"a":1}})", 0)},
      {"deep", file_of("{\"x\":" + std::string(100'000, '[') + "}", 0)},
      {"bool 7", file_of(R"({"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 0) + "\7"},
  };
  for (const auto& file : kFiles) {
    INFO(file.first);
    dir.write("t", file.second);
    auto back = read_safetensors(dir.path("t"));
    CHECK(back.status().code() == Code::data_loss);
  }
}

TEST_CASE("hostile mutations of a safetensors file are refused or read") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  FaultyFiles files(seed);
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(write_safetensors("t", random_content(v), files).ok());
    auto& bytes = files.bytes("t");
    for (std::uint64_t n = 1 + v.below(3); n > 0; --n)
      bytes[v.below(bytes.size())] =
          std::byte(v.flag() ? v.below(256) : "0123456789[]{},:\""[v.below(17)]);
    if (v.below(4) == 0) bytes.resize(v.below(bytes.size()));
    auto back = read_safetensors("t", files);
    const Code code = back.status().code();
    if (!back.ok()) CHECK((code == Code::data_loss || code == Code::invalid_argument));
  }
}

TEST_CASE("a tensor of a dtype that is none of ours hinders only those who read it") {
  TemporaryDir dir;
  dir.write("t", file_of(R"({"a":{"dtype":"F8_E4M3","shape":[2,3],"data_offsets":[0,6]},)"
                         R"("b":{"dtype":"I8","shape":[2],"data_offsets":[6,8]}})",
                         0) +
                     std::string("123456\7\x8"));
  auto file = SafetensorsFile::open(dir.path("t"));
  REQUIRE(file.ok());
  CHECK(file->find("c") == nullptr);
  REQUIRE((file->find("a") && file->find("b")));
  CHECK(file->find("a")->type_text() == "F8_E4M3[2,3]");
  CHECK(file->find("b")->type_text() == "i8[2]");
  CHECK(Tensor::same(file->read(*file->find("b")).value(), Tensor::of<std::int8_t>({2}, {7, 8})));
  for (const Status& refused :
       {file->read(*file->find("a")).status(), read_safetensors(dir.path("t")).status()}) {
    CHECK(refused.code() == Code::invalid_argument);
    CHECK(refused.text().find("'a' has dtype 'F8_E4M3', which Troupe does not have") !=
          std::string::npos);
    CHECK(refused.text().find(dir.path("t")) != std::string::npos);
  }
}

TEST_CASE("hostile names in place of a safetensors file are refused") {
  TemporaryDir dir;
  CHECK(read_safetensors(dir.path("nothing")).status().code() == Code::not_found);
  std::filesystem::create_directory(dir.path("d"));
  CHECK(read_safetensors(dir.path("d")).status().code() == Code::failed_precondition);
  dir.write("t", file_of("{}", 0));
  std::filesystem::create_symlink(dir.path("t"), dir.path("link"));
  CHECK(read_safetensors(dir.path("link")).status().code() == Code::failed_precondition);
}
