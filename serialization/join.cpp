#include "serialization/join.hpp"

#include "serialization/detail/capnp.hpp"
#include "serialization/schema/join.capnp.h"
#include "serialization/wire.hpp"

namespace troupe {

using detail::text;

Expected<std::string> encode_join(const Join& join) {
  auto bytes = detail::build<schema::Join>([&](schema::Join::Builder out) {
    out.setVersion(join.version);
    out.setProcess(join.process);
    out.setIncarnation(join.incarnation);
    out.setJob(text(join.job));
    out.setListenHost(text(join.listen_host));
    out.setListenPort(join.listen_port);
    out.setCpus(join.cpus);
    auto profile = out.initProfile();
    profile.setIsa(join.profile.isa);
    profile.setKernels(text(join.profile.kernels));
    profile.setL1(join.profile.l1);
    profile.setL2(join.profile.l2);
    profile.setL3(join.profile.l3);
    auto registered = out.initRegistered();
    registered.setOps(join.registered.ops);
    registered.setPasses(join.registered.passes);
    registered.setDevices(join.registered.devices);
  });
  if (bytes.size() > kMaxJoin)
    return invalid_argument("the name of the job, the host or the kernels is too long to join");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Expected<Join> decode_join(std::string_view bytes) {
  if (bytes.size() > kMaxJoin) return invalid_argument("a hello that is too long");
  return detail::parse<schema::Join>(
      std::as_bytes(std::span(bytes)), [](schema::Join::Reader in) -> Expected<Join> {
        auto profile = in.getProfile();
        auto registered = in.getRegistered();
        return Join{in.getVersion(),
                    in.getProcess(),
                    in.getIncarnation(),
                    text(in.getJob()),
                    text(in.getListenHost()),
                    in.getListenPort(),
                    in.getCpus(),
                    {profile.getIsa(), text(profile.getKernels()), profile.getL1(), profile.getL2(),
                     profile.getL3()},
                    {registered.getOps(), registered.getPasses(), registered.getDevices()}};
      });
}

}  // namespace troupe
