// What a machine of the processes' put out, by kind.
#pragma once

#include <variant>
#include <vector>

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

}  // namespace troupe
