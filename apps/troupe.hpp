// Everything a client program needs: graphs, layers, optimizers, data, sessions, jobs.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "actors/client/batcher.hpp"
#include "actors/client/session.hpp"
#include "actors/job/job.hpp"
#include "actors/runtime/inherited_worker.hpp"
#include "ops/api.hpp"
#include "serialization/graph_io.hpp"
#include "serialization/summary_writer.hpp"

namespace troupe {

// As fmt::print does, but for this: what cannot be written, to a disk that is full or a reader that
// is gone, shows in ferror() alone. A program that trains for hours does not end for it.
template <class... T>
void print(std::FILE* to, fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), to);
}
template <class... T>
void print(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace troupe
