// Limits of a Policy (trial.proto), the same wherever one is given.
#ifndef REGATTA_PROTO_POLICY_LIMITS_H_
#define REGATTA_PROTO_POLICY_LIMITS_H_

namespace regatta {

inline constexpr int kMaxThreads = 1024;

}  // namespace regatta

#endif  // REGATTA_PROTO_POLICY_LIMITS_H_
