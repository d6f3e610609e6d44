#include "devices/cuda/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace troupe::cuda {
namespace {

// Below a folder of a search: the folder itself, those of a toolkit, and those of wheels.
constexpr std::array kBelow = {"",
                               "lib64",
                               "lib",
                               "nvidia/cu13/lib",
                               "nvidia/cudnn/lib",
                               "nvidia/cublas/lib",
                               "nvidia/cuda_nvrtc/lib"};

std::string last_error() {
  const char* text = dlerror();
  return text ? text : "for no reason that the loader tells";
}

std::string path_of(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
    return map->l_name;
  return asked;
}

// The folder that holds the folder of this library.
std::string above_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&above_this_library), &info) == 0 || !info.dli_fname)
    return {};
  std::error_code error;
  const auto file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : file.parent_path().parent_path().string();
}

Status missing(const std::string& name, const Search& search) {
  std::string where;
  for (const std::string& folder : search.folders)
    where += (where.empty() ? " in " : ", ") + folder;
  if (search.loader) where += where.empty() ? " where the loader looks" : ", or the loader's paths";
  return not_found(name + " is not" + (where.empty() ? " searched for anywhere" : where));
}

}  // namespace

Search Search::of(std::string_view cuda_path, std::string_view beside) {
  Search search;
  while (!cuda_path.empty()) {
    const std::size_t end = std::min(cuda_path.find(':'), cuda_path.size());
    const std::string_view entry = cuda_path.substr(0, end);
    cuda_path.remove_prefix(std::min(end + 1, cuda_path.size()));
    if (entry == "-") {
      search.loader = false;
      return search;
    }
    if (!entry.empty()) search.folders.emplace_back(entry);
  }
  if (!beside.empty()) search.folders.push_back(std::string(beside) + "/cuda");
  search.folders.emplace_back("/usr/local/cuda");
  return search;
}

Search Search::standard() {
  const char* path = std::getenv("TROUPE_CUDA_PATH");
  return of(path ? path : "", above_this_library());
}

Expected<Library> Library::open(const std::vector<std::string>& names, const Search& search) {
  for (const std::string& name : names) {
    for (const std::string& folder : search.folders)
      for (const char* below : kBelow) {
        const std::string file = folder + "/" + below + (*below ? "/" : "") + name;
        if (access(file.c_str(), F_OK) != 0) continue;
        void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) return failed_precondition(file + " cannot be loaded: " + last_error());
        return Library(handle, path_of(handle, file));
      }
    if (!search.loader) continue;
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return Library(handle, path_of(handle, name));
    // What the loader says of a file that is nowhere begins with the name it was asked for.
    const std::string why = last_error();
    if (!why.starts_with(name + ": cannot open shared object file"))
      return failed_precondition(name + " cannot be loaded: " + why);
  }
  return missing(names.front(), search);
}

// As it was found, and where its file is if that was a link.
void open_beside(const Library& library, const std::string& name) {
  std::error_code error;
  const std::filesystem::path found(library.path()),
      real = std::filesystem::canonical(found, error);
  for (const std::filesystem::path& file : {found, real}) {
    if (!file.has_parent_path()) continue;
    if (dlopen((file.parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return;
  }
}

std::vector<std::string> names_for_driver(std::string_view library, int driver_version) {
  const bool older = driver_version != 0 && driver_version < 13'000;
  std::vector<std::string> names;
  for (const char* version : {older ? ".12" : ".13", older ? ".13" : ".12"})
    names.push_back(std::string(library) + version);
  return names;
}

void* Library::find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace troupe::cuda
