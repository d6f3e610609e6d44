#include "devices/kernel_call.hpp"

#include <new>
#include <stdexcept>
#include <string>

namespace troupe {

Status status_of_exception() {
  try {
    throw;
  } catch (const Error& e) {
    return e.status();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for what the kernel computes");
  } catch (const std::length_error&) {
    return resource_exhausted("no memory for what the kernel computes");
  } catch (const std::exception& e) {
    return internal_error(std::string("the kernel threw an exception: ") + e.what());
  } catch (...) {
    return internal_error("the kernel threw an exception of unknown type");
  }
}

}  // namespace troupe
