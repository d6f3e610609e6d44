// Generated text: a data set for language models that needs no download.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

// The first `characters` bytes of the tales of a seed: sentences of a small grammar with about two
// hundred words, in paragraphs. Words depend on earlier words: "it" refers to the first character,
// speech is in quotes, numbers agree. Deterministic; a text is a prefix of longer ones of its seed.
std::string draw_tales(std::uint64_t seed, std::int64_t characters);

}  // namespace troupe
