// What a builder signs and a board checks: see BuildAnswer in
// fleet_service.proto. Pure functions.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_BUILD_SEAL_H_
#define REGATTA_DEVICE_AGENT_REMOTE_BUILD_SEAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/ed25519.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// Of one file that goes with an answer, and of one part of it under way.
inline constexpr int64_t kMaxBlobBytes = int64_t{64} << 20;
inline constexpr int64_t kBlobChunkBytes = 128 << 10;

// Fills in public key and signature of an answer to `request`. REQUIRES: the
// rest of it but for the order's id is filled in.
void SealAnswer(const SigningKey& key, const std::string& request,
                v1::BuildAnswer& answer);

// PermissionDenied unless the answer is to `request` and signed by one of
// `trusted` (public keys); InvalidArgument when its file would be too large.
absl::Status CheckSeal(const std::vector<std::string>& trusted,
                       const std::string& request,
                       const v1::BuildAnswer& answer);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_BUILD_SEAL_H_
