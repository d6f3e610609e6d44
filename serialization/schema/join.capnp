# The hello of a connection, a message of its own of at most 3 KiB. Processes of different versions
# understand it, so that one can refuse the other with a reason. serialization/join.hpp says what the
# fields mean.
@0xc6582ed120a0d798;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Join {
  version @0 :UInt32;
  process @1 :UInt32;
  incarnation @2 :UInt64;
  job @3 :Text;
  listenHost @4 :Text;
  listenPort @5 :UInt16;
  cpus @6 :UInt32;
  profile @7 :NumericProfile;
  registered @8 :Registered;
}

struct NumericProfile {
  isa @0 :UInt32;
  kernels @1 :Text;
  l1 @2 :Int64;
  l2 @3 :Int64;
  l3 @4 :Int64;
}

struct Registered {
  ops @0 :UInt64;
  passes @1 :UInt64;
  devices @2 :UInt64;
}
