# Values that graphs are made of. Absent pointers read as empty lists and empty texts.
# Text is any bytes, without a claim to be UTF-8. Readers check everything: numbers of enumerations,
# ranks, byte counts.
@0xc3091c77c5890131;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

# The content is row-major and little-endian. A numeric tensor's is its elements as they stand in
# memory; a string tensor's is the bytes of all strings, one after the other.
struct Tensor {
  dtype @0 :UInt8;         # core/dtype.hpp; 0 is the undefined tensor, which has nothing else
  dims @1 :List(Int64);    # at most 8, none negative
  sizes @2 :List(UInt64);  # dtype string only: bytes of each string
  data @3 :Data;           # the first 256 MiB of the content
  more @4 :List(Data);     # the rest, in parts of 256 MiB, the last one shorter
}

struct PartialShape {
  knownRank @0 :Bool;
  dims @1 :List(Int64);    # -1 for unknown; empty when the rank is unknown
}

# In the order of the alternatives of Attr::Value.
struct Attr {
  name @0 :Text;
  union {
    integer @1 :Int64;
    number @2 :Float64;
    flag @3 :Bool;
    text @4 :Text;
    type @5 :UInt8;
    shape @6 :PartialShape;
    tensor @7 :Tensor;
    integers @8 :List(Int64);
    numbers @9 :List(Float64);
    texts @10 :List(Text);
    types @11 :List(UInt8);
    shapes @12 :List(PartialShape);
  }
}

struct Site {
  file @0 :Text;
  line @1 :UInt32;         # 0: unknown
}
