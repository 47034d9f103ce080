// What gRPC has to say for itself.
#ifndef REGATTA_PROTO_GRPC_LOG_SERVICE_H_
#define REGATTA_PROTO_GRPC_LOG_SERVICE_H_

namespace regatta {

// Our programs say themselves what went wrong, so gRPC's own lines are left out
// unless the environment's GRPC_VERBOSITY asks for them; then they are lines of
// the log (base/log.h), one each. To be called at the start of main.
void KeepGrpcQuiet();

}  // namespace regatta

#endif  // REGATTA_PROTO_GRPC_LOG_SERVICE_H_
