// What a machine of the processes' put out, by kind, and what it says of it.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "core/status.hpp"

namespace troupe {

template <class T, class Outputs>
std::vector<T> outputs_of(const Outputs& outputs) {
  std::vector<T> found;
  for (const auto& output : outputs)
    if (auto* x = std::get_if<T>(&output)) found.push_back(*x);
  return found;
}

// The messages of type M that its outputs of type T carry.
template <class T, class M, class Outputs>
std::vector<M> messages_of(const Outputs& outputs) {
  std::vector<M> found;
  for (const auto& output : outputs_of<T>(outputs))
    if (auto* message = std::get_if<M>(&output.message)) found.push_back(*message);
  return found;
}

inline void says(const Status& status, Code code, const std::string& what) {
  CAPTURE(status.text());
  CHECK(status.code() == code);
  CHECK(status.text().find(what) != std::string::npos);
}

}  // namespace troupe
