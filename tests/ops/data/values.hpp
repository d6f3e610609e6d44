// What tests ask of pipelines.
#pragma once

#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "tests/ops/data/data_files.hpp"

namespace troupe::test {

using Values = std::vector<Tensor>;

// All elements of a pipeline that ends, or what goes wrong first.
inline Expected<std::vector<Values>> elements_in_order(const data::Examples& examples) {
  TROUPE_TRY(Pipeline pipeline, open_examples(examples));
  std::vector<Values> all;
  for (;;) {
    auto values = pipeline.element(all.size());
    if (!values.ok() && is_dataset_end(values.status())) return all;
    if (!values.ok()) return values.status();
    all.push_back(std::move(values).value());
  }
}

inline Status error_in_order(const data::Examples& examples) {
  return elements_in_order(examples).status();
}

inline bool tells(const Status& status, std::string_view text) {
  return status.text().find(text) != std::string::npos;
}

inline bool same_values(const Values& a, const Values& b) {
  bool same = a.size() == b.size();
  for (std::size_t c = 0; same && c < a.size(); ++c) same = Tensor::same(a[c], b[c]);
  return same;
}

// A pipeline that begins anywhere, as one of a resumed job does, goes on with the same elements,
// and so does one that is asked in any order.
inline void check_places(const data::Examples& examples, std::uint64_t seed) {
  INFO("seed " << seed);
  const auto all = elements_in_order(examples);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE_FALSE(all->empty());
  for (std::size_t begin = 0; begin < all->size(); begin += 1 + all->size() / 5) {
    Pipeline resumed = open_examples(examples).value();
    for (std::size_t e = begin; e < all->size(); ++e) {
      const auto values = resumed.element(e);
      REQUIRE_MESSAGE(values.ok(), values.status().text());
      CHECK(same_values(*values, (*all)[e]));
    }
    CHECK(is_dataset_end(resumed.element(all->size()).status()));
  }
  Random random(seed);
  Pipeline jumping = open_examples(examples).value();
  for (std::size_t i = 0; i < 2 * all->size(); ++i) {
    const std::size_t e = random.below(all->size());
    const auto values = jumping.element(e);
    REQUIRE_MESSAGE(values.ok(), values.status().text());
    CHECK(same_values(*values, (*all)[e]));
  }
}

// No warnings of what is skipped, while it lives.
struct QuietLog {
  QuietLog() { set_log_level(LogLevel::error); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
  ~QuietLog() { set_log_level(LogLevel::warning); }
};

// Every truncation of a file, and every byte of it flipped in some ways: what is read is an error
// that names the file, or elements of which `right` says that they may be read. Returns how many
// were errors. The file is in memory.
template <class Right>
int check_damages(const std::string& content, const data::Examples& examples, Right right) {
  Graph g(7);
  const Output first = examples.outputs(g)[0];
  const NodeDef dataset = g.node(g.node(first.node()).inputs[0].node);
  int errors = 0;
  const auto check = [&](const std::string& damaged, const std::string& how) {
    std::string name;
    const auto read = [&]() -> Expected<std::vector<Values>> {
      TROUPE_TRY(Pipeline pipeline,
                 open_dataset(dataset, [&](const std::string& path) -> Expected<DataFilePtr> {
                   name = path;
                   return memory_file(path, damaged);
                 }));
      std::vector<Values> all;
      for (;;) {
        auto values = pipeline.element(all.size());
        if (!values.ok() && is_dataset_end(values.status())) return all;
        if (!values.ok()) return values.status();
        all.push_back(std::move(values).value());
      }
    };
    const auto all = read();
    if (all.ok()) {
      CHECK_MESSAGE(right(*all), how);
      return;
    }
    ++errors;
    CHECK_MESSAGE(tells(all.status(), name), how << ": " << all.status().text());
    CHECK_MESSAGE(all.status().code() != Code::internal, how << ": " << all.status().text());
  };
  for (std::size_t n = 0; n < content.size(); ++n)
    check(content.substr(0, n), "the first " + std::to_string(n) + " bytes");
  for (std::size_t i = 0; i < content.size(); ++i)
    for (const int bits : {1, 0x80, 0xff}) {
      std::string damaged = content;
      damaged[i] = char(damaged[i] ^ bits);
      check(damaged, "byte " + std::to_string(i) + " ^ " + std::to_string(bits));
    }
  return errors;
}

}  // namespace troupe::test
