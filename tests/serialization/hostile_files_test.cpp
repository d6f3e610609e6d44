// Files that are wrong in one place: each is refused with what was expected, and no memory is taken
// for what it only claims.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "serialization/checkpoint.hpp"
#include "serialization/detail/manifest.hpp"
#include "serialization/graph_io.hpp"
#include "serialization/safetensors.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct File {
  const char* what;
  std::string content;
  const char* says;
};

// A safetensors file with this header and that many bytes of data.
std::string tensors(const std::string& header, std::size_t data) {
  std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data, '\1');
}
// The same of one tensor "x".
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets,
                   std::size_t data) {
  return tensors(R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
                     offsets + "}}",
                 data);
}
std::string claims(std::uint64_t header) {
  return std::string(reinterpret_cast<const char*>(&header), 8) + "{}";
}

std::vector<File> safetensors_files() {
  return {
      {"a header of 2^63", claims(std::uint64_t{1} << 63), "longer than the file"},
      {"a header one byte too long", claims(3), "longer than the file"},
      {"a header of 2^32", claims(std::uint64_t{1} << 32), "longer than the file"},
      {"a header of no bytes", claims(0), "'{'"},
      {"a header cut by one byte", claims(1), "header"},
      {"a byte of zero in front", tensors(std::string("\0{}", 3), 0), "'{'"},
      {"spaces in front", tensors("  {}", 0), "'{'"},
      {"a byte order mark", tensors("\xef\xbb\xbf{}", 0), "'{'"},
      {"null", tensors("null", 0), "'{'"},
      {"a dtype in small letters", tensor("f32", "[1]", "[0,4]", 4), "dtype 'f32'"},
      {"a dtype of none", tensor("", "[1]", "[0,4]", 4), "dtype ''"},
      {"a dtype and a space", tensor("F32 ", "[1]", "[0,4]", 4), "dtype 'F32 '"},
      {"a dtype of handles", tensor("RESOURCE", "[1]", "[0,4]", 4), "dtype 'RESOURCE'"},
      {"a dtype of text", tensor("STRING", "[1]", "[0,4]", 4), "dtype 'STRING'"},
      {"a dtype of 8 bits that we lack", tensor("F8_E5M2", "[4]", "[0,4]", 4), "dtype 'F8_E5M2'"},
      {"a shape of text", tensor("F32", "\"1\"", "[0,4]", 4), "shape"},
      {"a shape of nothing", tensor("F32", "null", "[0,4]", 4), "null"},
      {"a shape of fractions", tensor("F32", "[1.0]", "[0,4]", 4), ""},
      {"a shape in a shape", tensor("F32", "[[1]]", "[0,4]", 4), ""},
      {"a dimension of true", tensor("F32", "[true]", "[0,4]", 4), ""},
      {"a product of 2^64", tensor("U8", "[4294967296,4294967296]", "[0,0]", 0), ""},
      {"a product of 2^63", tensor("U8", "[9223372036854775807,1]", "[0,1]", 1), ""},
      {"bytes beyond 2^63", tensor("F64", "[2305843009213693952]", "[0,8]", 8), ""},
      {"an overflow beside a zero", tensor("U8", "[0,9223372036854775807,9]", "[0,0]", 0), ""},
      {"negative offsets", tensor("U8", "[1]", "[-1,0]", 1), ""},
      {"an end of -1", tensor("U8", "[1]", "[0,-1]", 1), ""},
      {"offsets of 2^64", tensor("U8", "[1]", "[0,18446744073709551616]", 1), ""},
      {"offsets of 1e30", tensor("U8", "[1]", "[0,1e30]", 1), ""},
      {"offsets of text", tensor("U8", "[1]", "[\"0\",\"1\"]", 1), ""},
      {"no offsets", tensor("U8", "[1]", "[]", 1), ""},
      {"one offset", tensor("U8", "[1]", "[1]", 1), ""},
      {"an end that wraps round", tensor("U8", "[1]", "[18446744073709551615,0]", 1), ""},
      {"a tensor of 1 TiB in 4 bytes", tensor("U8", "[1099511627776]", "[0,1099511627776]", 4),
       "1099511627776 bytes"},
      {"half an element", tensor("F32", "[1]", "[0,2]", 2), ""},
      {"an element too many", tensor("F32", "[]", "[0,8]", 8), ""},
      {"data after the last tensor", tensor("U8", "[1]", "[0,1]", 9), "has 9"},
      {"a tensor that is a number", tensors(R"({"x":1})", 0), ""},
      {"a tensor that is a list", tensors(R"({"x":[1]})", 0), ""},
      {"a tensor that is null", tensors(R"({"x":null})", 0), ""},
      {"a tensor without a field", tensors(R"({"x":{}})", 0), ""},
      {"a name of bytes that are no UTF-8",
       tensors("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), ""},
      {"a comment", tensors("{/* */}", 0), ""},
      {"a comma too many", tensors(R"({"__metadata__":{},})", 0), ""},
      {"metadata twice", tensors(R"({"__metadata__":{},"__metadata__":{}})", 0), ""},
      {"metadata of one name twice", tensors(R"({"__metadata__":{"a":"1","a":"2"}})", 0), ""},
      {"metadata in metadata", tensors(R"({"__metadata__":{"a":{"b":"c"}}})", 0), ""},
  };
}

// A manifest's text with a right checksum at its end, whatever it says.
std::string sealed(std::string body) {
  if (!body.empty() && body.back() == '}') body.pop_back();
  std::uint32_t crc = detail::crc32c(std::as_bytes(std::span(body.data(), body.size())));
  return body + fmt::format(",\"crc32c\":\"{:08x}\"}}\n", crc);
}

struct ManifestInput {
  const char* what;
  std::function<void(nlohmann::ordered_json&)> spoil;
  const char* says;
};

const std::vector<ManifestInput>& manifests() {
  static const std::vector<ManifestInput> all = {
      {"another version", [](auto& m) { m["format"] = "troupe checkpoint 1"; },
       "not 'troupe checkpoint 6'"},
      {"no version", [](auto& m) { m.erase("format"); }, "format"},
      {"a number as version", [](auto& m) { m["format"] = 1; }, "string"},
      {"no step", [](auto& m) { m.erase("step"); }, "step"},
      {"no commit", [](auto& m) { m.erase("commit"); }, "commit"},
      {"text as step", [](auto& m) { m["step"] = "7"; }, "number"},
      {"a list of seeds",
       [](auto& m) {
         m["seed"] = {1, 2};
       },
       "number"},
      {"no hash of the graph", [](auto& m) { m.erase("graph_sha256"); }, "graph_sha256"},
      {"no hash of the tensors", [](auto& m) { m.erase("tensors_sha256"); }, "tensors_sha256"},
      {"another hash of the tensors", [](auto& m) { m["tensors_sha256"] = std::string(64, '0'); },
       "the hash that it states"},
      {"a tensor of another shape", [](auto& m) { m["files"][0]["tensors"][0]["shape"] = {-1}; },
       ""},
      {"a tensor of 2^64 elements",
       [](auto& m) {
         m["files"][0]["tensors"][0]["shape"] = {4294967296, 4294967296};
       },
       ""},
      {"a tensor of a dtype that nobody knows",
       [](auto& m) { m["files"][0]["tensors"][0]["dtype"] = "f33"; }, "unknown dtype"},
      {"a tensor in two places",
       [](auto& m) { m["files"][0]["tensors"].push_back(m["files"][0]["tensors"][0]); },
       "'w' stands in two places"},
      {"null as profile", [](auto& m) { m["numeric_profile"] = nullptr; }, "string"},
      {"metadata of numbers",
       [](auto& m) {
         m["metadata"] = {{"a", 1}};
       },
       "string"},
      {"no datasets", [](auto& m) { m.erase("datasets"); }, "datasets"},
      {"text as a dataset", [](auto& m) { m["datasets"][0] = "data"; }, ""},
      {"a dataset without a name", [](auto& m) { m["datasets"][0].erase("name"); }, "name"},
      {"a dataset twice", [](auto& m) { m["datasets"].push_back(m["datasets"][0]); },
       "the dataset 'data' twice"},
      {"a dataset read before its beginning", [](auto& m) { m["datasets"][0]["next"] = -1; },
       "a place that cannot be"},
      {"an element left that was not reached", [](auto& m) { m["datasets"][0]["left"] = {9}; },
       "a place that cannot be"},
      {"elements left in another order",
       [](auto& m) {
         m["datasets"][0]["left"] = {3, 2};
       },
       "a place that cannot be"},
      {"no resources", [](auto& m) { m.erase("resources"); }, "resources"},
      {"a number as a resource", [](auto& m) { m["resources"] = {7}; }, ""},
      {"no files", [](auto& m) { m.erase("files"); }, "files"},
      {"text as files", [](auto& m) { m["files"] = "t"; }, ""},
      {"a number as a file", [](auto& m) { m["files"][0] = 1; }, ""},
      {"a file without a name", [](auto& m) { m["files"][0].erase("name"); }, "name"},
      {"a file without a size", [](auto& m) { m["files"][0].erase("size"); }, "size"},
      {"a file without checksums", [](auto& m) { m["files"][0].erase("crc32c_per_mib"); },
       "crc32c_per_mib"},
      {"a name in a directory above", [](auto& m) { m["files"][0]["name"] = "../x"; }, "'../x'"},
      {"an absolute name", [](auto& m) { m["files"][0]["name"] = "/etc/passwd"; }, "'/etc/passwd'"},
      {"a name in a directory below", [](auto& m) { m["files"][0]["name"] = "a/../../x"; },
       "'a/../../x'"},
      {"the directory itself", [](auto& m) { m["files"][0]["name"] = "."; }, "'.'"},
      {"the directory above", [](auto& m) { m["files"][0]["name"] = ".."; }, "'..'"},
      {"an empty name", [](auto& m) { m["files"][0]["name"] = ""; }, "''"},
      {"the manifest in itself", [](auto& m) { m["files"][0]["name"] = "manifest.json"; },
       "'manifest.json'"},
      {"a name with a zero byte", [](auto& m) { m["files"][0]["name"] = std::string("a\0b", 3); },
       "plain name"},
      {"one file twice", [](auto& m) { m["files"].push_back(m["files"][0]); }, "'a.safetensors'"},
      {"a size of 2^64 - 1", [](auto& m) { m["files"][0]["size"] = ~std::uint64_t{0}; },
       "checksums for a.safetensors"},
      {"a size of 2^63", [](auto& m) { m["files"][0]["size"] = std::uint64_t{1} << 63; },
       "checksums for a.safetensors"},
      {"a checksum too many", [](auto& m) { m["files"][0]["crc32c_per_mib"].push_back(1); },
       "checksums for a.safetensors"},
      {"text as a checksum", [](auto& m) { m["files"][0]["crc32c_per_mib"][0] = "1"; }, "number"},
  };
  return all;
}

detail::Manifest good_manifest() {
  detail::Manifest manifest;
  manifest.step = 7;
  manifest.files = {
      {"a.safetensors", 10, {1}, {{"w", DType::f32, Shape{2}, std::string(64, 'a')}}}};
  manifest.datasets = {{{"", "data"}, 9, {2, 3}}};
  return manifest;
}

void refused(const Status& status, std::string_view says) {
  CHECK(!status.ok());
  CHECK(!status.message().empty());
  CHECK_MESSAGE(status.text().find(says) != std::string::npos, status.text());
}

}  // namespace

TEST_CASE("hostile safetensors files by hand are refused") {
  TemporaryDir dir;
  const auto files = safetensors_files();
  for (const File& file : files) {
    INFO(std::string(file.what));
    dir.write("t", file.content);
    Status status = read_safetensors(dir.path("t")).status();
    const bool dtype_alone = std::string_view(file.says).starts_with("dtype '");
    CHECK(status.code() == (dtype_alone ? Code::invalid_argument : Code::data_loss));
    refused(status, file.says);
  }
  MESSAGE("hostile inputs by hand: " << files.size());
}

TEST_CASE("hostile manifests by hand are refused") {
  const std::string good = detail::format_manifest(good_manifest()).value();
  const std::string body = good.substr(0, good.size() - 22) + "}";
  REQUIRE(sealed(body) == good);
  for (const ManifestInput& input : manifests()) {
    INFO(std::string(input.what));
    auto json = nlohmann::ordered_json::parse(body);
    input.spoil(json);
    refused(detail::parse_manifest(sealed(json.dump())).status(), input.says);
  }
  const File kTexts[] = {
      {"nothing", "", "cut"},
      {"a byte too few in front", good.substr(1), "damaged"},
      {"a byte too few at the end", good.substr(0, good.size() - 1), "damaged"},
      {"a byte too many", good + "\n", "damaged"},
      {"no checksum", body, "damaged"},
      {"a checksum alone", good.substr(good.size() - 22), "damaged"},
      {"no JSON", sealed("{]"), "cannot be read"},
      {"a list", sealed("[1]"), "cannot be read"},
      {"a thousand lists", sealed("{\"files\":" + std::string(1000, '[')), "cannot be read"},
      {"no UTF-8", sealed("{\"format\":\"\xff\""), "cannot be read"},
  };
  for (const File& text : kTexts) {
    INFO(std::string(text.what));
    refused(detail::parse_manifest(text.content).status(), text.says);
  }
  MESSAGE("hostile inputs by hand: " << manifests().size() + std::size(kTexts));
}

TEST_CASE("hostile graph files by hand are refused") {
  TemporaryDir dir;
  const std::string kWord(4, '\xff');
  const File kFiles[] = {
      {"nothing", "", ""},
      {"one byte", "x", ""},
      {"text", "graph { a -> b }", ""},
      {"zeros", std::string(64, '\0'), ""},
      {"2^32 segments", kWord + std::string(60, '\0'), ""},
      {"a segment of 2^32 words", std::string(4, '\0') + kWord + std::string(8, '\0'), ""},
      {"JSON", "{\"nodes\":[]}", ""},
      {"a megabyte of ones", std::string(1 << 20, '\xff'), ""},
  };
  for (const File& file : kFiles) {
    INFO(std::string(file.what));
    dir.write("g", file.content);
    Status status = read_graph(dir.path("g")).status();
    refused(status, file.says);
    CHECK(status.text().find(dir.path("g")) != std::string::npos);
  }
  MESSAGE("hostile inputs by hand: " << std::size(kFiles));
}
