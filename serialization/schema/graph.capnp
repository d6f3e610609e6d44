# A program as data. What a reader of this schema hands out still has to pass import_graph: names,
# ops, attributes and the nodes that inputs point to are not checked here.
@0xce60d4b26117bab7;

using Cxx = import "/capnp/c++.capnp";
using V = import "/serialization/schema/value.capnp";
$Cxx.namespace("troupe::schema");

struct Port {
  node @0 :UInt32;               # place in Graph.nodes
  index @1 :UInt32;
}

struct Node {
  name @0 :Text;                 # not empty
  op @1 :Text;                   # not empty
  inputs @2 :List(Port);
  control @3 :List(UInt32);      # places in Graph.nodes
  attrs @4 :List(V.Attr);        # by name, ascending, each once
  device @5 :Text;
  colocate @6 :List(Text);       # names of nodes
  replica @7 :Int32 = -1;
  site @8 :V.Site;
  outTypes @9 :List(UInt8);
  outShapes @10 :List(V.PartialShape);
}

struct Function {
  name @0 :Text;                 # not empty
  nodes @1 :List(Node);          # their inputs and control are places in this list
  arguments @2 :List(UInt32);
  results @3 :List(Port);
  resultTypes @4 :List(UInt8);
  resultShapes @5 :List(V.PartialShape);
  site @6 :V.Site;
}

struct Graph {
  nodes @0 :List(Node);
  seed @1 :UInt64;
  functions @2 :List(Function);
}
