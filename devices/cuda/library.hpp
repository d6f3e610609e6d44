// Library: a shared library that is opened at run time, or found missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe::cuda {

// Where the libraries of CUDA are looked for. Below each folder also in lib64/, lib/ and where
// NVIDIA's wheels put them.
struct Search {
  std::vector<std::string> folders;  // in this order
  bool loader = true;                // then what the dynamic loader finds by itself

  // The folders of TROUPE_CUDA_PATH (with colons between them), then cuda/ beside the folder of
  // this library (build/cuda in a build tree), then /usr/local/cuda. An entry "-" in
  // TROUPE_CUDA_PATH ends the list: nothing behind it is searched, the loader included.
  static Search standard();
  static Search of(std::string_view cuda_path, std::string_view beside);
};

// Once opened it stays until the process ends: threads of a driver may run its code up to then.
class Library {
 public:
  // The first of `names` that is anywhere. not_found tells where it was looked for;
  // failed_precondition why a file that is there cannot be loaded: it is never passed over for
  // another one further down the list.
  static Expected<Library> open(const std::vector<std::string>& names, const Search& search);

  void* find(const char* symbol) const;  // null: it has none of that name
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

// Opens a library that `library` will ask the loader for by its name, where it lies beside it, so
// that the loader has it. NVIDIA's need not look there by themselves, and the loader knows few
// folders. Nothing where it is not there: the loader may find another.
void open_beside(const Library& library, const std::string& name);

// The names of a library that each version of CUDA has, ("libnvrtc.so": libnvrtc.so.13, ...), for a
// driver of that version (0: unknown), best first. A driver serves libraries of its own major
// version and of older ones; newer ones come last, so that what is found can be told too new.
std::vector<std::string> names_for_driver(std::string_view library, int driver_version);

// Fills `table` with the functions of its names: Table::each(table, visit) visits name and member.
// The first name that the library lacks, or null.
template <class Table>
const char* fill(Table& table, const Library& library) {
  const char* lacks = nullptr;
  Table::each(table, [&](const char* name, auto& member) {
    void* found = library.find(name);
    if (!found && !lacks) lacks = name;
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(found);
  });
  return lacks;
}

}  // namespace troupe::cuda
