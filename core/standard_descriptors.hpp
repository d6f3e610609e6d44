// The descriptors 0, 1 and 2.
#pragma once

namespace troupe {

// Descriptors 0 to 2 that the program was started without become ones that nothing can be read from
// or written to: the first file or connection would get their numbers, and what is printed or
// logged would go there. Done when the library is loaded, before a program opens anything.
void fill_standard_descriptors();

}  // namespace troupe
