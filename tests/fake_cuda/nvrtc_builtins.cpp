// The second library of the tests' compiler: build/fake-nvrtc/libnvrtc-builtins.so.13.0. It has a
// name of its own inside, so that NVIDIA's compiler in the same process does not take it for its.

extern "C" __attribute__((visibility("default"))) int troupe_fake_builtins() { return 1; }
