// Files for tests of datasets, in a directory of their own.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ops/data/data.hpp"
#include "ops/data/dataset.hpp"
#include "ops/graph_api.hpp"

namespace troupe::test {

// Gone with what is in it.
class DataDirectory {
 public:
  DataDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-data-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;
  ~DataDirectory() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream out(path(name), std::ios::binary);
    out << content;
    REQUIRE(out.flush());
    return path(name);
  }

 private:
  std::string path_;
};

// The pipeline as a worker opens it. `functions` stand for those of the graph.
inline Expected<Pipeline> open_examples(const data::Examples& examples, Graph& g,
                                        ExampleFunctions functions = {},
                                        std::string_view name = "data") {
  const Output first = examples.outputs(g, name)[0];
  return open_dataset(
      g.node(g.node(first.node()).inputs[0].node),
      [](const std::string& path) { return open_local_file(path); }, functions);
}
inline Expected<Pipeline> open_examples(const data::Examples& examples) {
  Graph g(7);
  return open_examples(examples, g);
}

}  // namespace troupe::test
