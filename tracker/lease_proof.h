// Shows, without remembering anything, that an agent was given an assignment:
// a keyed digest of both and the lease's epoch, under a secret that outlives
// restarts of the tracker. Pure.
#ifndef REGATTA_TRACKER_LEASE_PROOF_H_
#define REGATTA_TRACKER_LEASE_PROOF_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "base/strings.h"

namespace regatta {

// 16 bytes.
inline std::string LeaseProof(std::string_view secret,
                              std::string_view agent_id,
                              std::string_view assignment_id,
                              int64_t lease_epoch) {
  // With the first name's length the parts cannot run together.
  return HmacSha256(secret,
                    absl::StrCat(lease_epoch, "\n", agent_id.size(), "\n",
                                 ToAbsl(agent_id), "\n", ToAbsl(assignment_id)))
      .substr(0, 16);
}

}  // namespace regatta

#endif  // REGATTA_TRACKER_LEASE_PROOF_H_
