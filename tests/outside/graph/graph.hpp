// A header of the program's own, under a path that the library has, too.
#pragma once

namespace outside {
inline constexpr const char* kGraph = "graph/graph of the program";
}
