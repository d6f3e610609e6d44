// The text of one attribute declaration, and the value rules that follow from it.
#pragma once

#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "graph/op_def.hpp"

namespace troupe::detail {

std::string_view trim(std::string_view text);
std::vector<std::string_view> words(std::string_view text);  // split at spaces
bool valid_word(std::string_view text);                      // [A-Za-z_][A-Za-z0-9_]*

// One attribute: "strides: list(int) = [1,1]", "mode: string {a b} = a".
Expected<AttrSpec> parse_attr(std::string_view text);

// Kind and allowed set of a value given for `spec`. Values that say the same in another kind are
// converted: an int where a float is wanted, an empty list of another kind. The message names
// the attribute, what was given and what is allowed.
Status accept(const AttrSpec& spec, Attr& value);
Status check_fallback(AttrSpec& spec);

}  // namespace troupe::detail
