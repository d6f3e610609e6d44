# Tensors by name, for what safetensors does not hold.
@0xc3d0e45613082ce4;

using Cxx = import "/capnp/c++.capnp";
using V = import "/serialization/schema/value.capnp";
$Cxx.namespace("troupe::schema");

struct NamedTensor {
  name @0 :Text;
  tensor @1 :V.Tensor;
}

struct Tensors {
  tensors @0 :List(NamedTensor);  # each name once
}
