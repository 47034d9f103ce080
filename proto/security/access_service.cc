#include "proto/security/access_service.h"

#include <grpc/grpc_security_constants.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/strings.h"
#include "proto/grpc_status_service.h"

namespace regatta {
namespace {

constexpr size_t kMaxCallers = 8192;

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  if (values.size() != 1) return "";
  return std::string(values.front().data(), values.front().size());
}

std::string Method(std::string_view path) {
  return std::string(ShortMethod(path));
}

}  // namespace

std::optional<Identity> PeerOf(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (auth == nullptr) return std::nullopt;
  auto identity =
      ParseIdentityUri(Property(*auth, GRPC_PEER_URI_PROPERTY_NAME));
  if (!identity.ok()) return std::nullopt;
  return *identity;
}

std::string PeerCertificate(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  return auth == nullptr ? ""
                         : Property(*auth, GRPC_X509_PEM_CERT_PROPERTY_NAME);
}

std::string PeerName(const grpc::ServerContextBase& context) {
  const auto peer = PeerOf(context);
  if (peer) return IdentityUri(*peer);
  const auto auth = context.auth_context();
  const bool secure =
      auth != nullptr &&
      !Property(*auth, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME).empty() &&
      Property(*auth, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) != "insecure";
  return secure ? "newcomer" : "plain text";
}

// Runs before the service sees the call.
class AccessControl::CallProcessor : public grpc::AuthMetadataProcessor {
 public:
  explicit CallProcessor(AccessControl* access) : access_(access) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* auth,
                       OutputMetadata*, OutputMetadata*) override {
    const auto path = metadata.find(":path");
    if (path == metadata.end()) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no method named");
    }
    return access_->Decide(
        std::string(path->second.data(), path->second.size()),
        Property(*auth, GRPC_X509_PEM_CERT_PROPERTY_NAME));
  }

 private:
  AccessControl* const access_;
};

// Watches an allowed call.
class AccessControl::CallInterceptor : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(AccessControl* access,
                  grpc::experimental::ServerRpcInfo* info)
      : access_(access), info_(info) {}
  ~CallInterceptor() override { access_->Ended(info_->server_context()); }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    grpc::ServerContextBase* context = info_->server_context();
    if (methods->QueryInterceptionHookPoint(
            Point::POST_RECV_INITIAL_METADATA)) {
      access_->Began(context);
    }
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) {
      // Not later: with the status the call itself may go.
      access_->Ended(context);
      const std::string method = Method(info_->method());
      const MethodRule* rule = FindMethodRule(method);
      const grpc::Status status = methods->GetSendStatus();
      // A newcomer's failed try is a refusal, which its service notes.
      if (rule != nullptr && rule->audited &&
          (status.ok() || !rule->newcomers)) {
        access_->options_.audit->Did(
            PeerName(*context), context->peer(), method,
            status.ok() ? "ok" : "failed: " + status.error_message());
      }
    }
    methods->Proceed();
  }

 private:
  AccessControl* const access_;
  grpc::experimental::ServerRpcInfo* const info_;
};

class AccessControl::CallInterceptorFactory
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallInterceptorFactory(AccessControl* access) : access_(access) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new CallInterceptor(access_, info);
  }

 private:
  AccessControl* const access_;
};

std::shared_ptr<grpc::AuthMetadataProcessor> AccessControl::Processor() {
  return std::make_shared<CallProcessor>(this);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
AccessControl::Interceptor() {
  return std::make_unique<CallInterceptorFactory>(this);
}

grpc::Status AccessControl::Decide(const std::string& path,
                                   const std::string& certificate) {
  const std::string method = Method(path);
  const MethodRule* rule = FindMethodRule(method);
  if (options_.newcomers) {
    if (rule != nullptr && rule->newcomers) return grpc::Status::OK;
    options_.audit->Refused("newcomer", "", method, "only Join is open here");
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                        "this port only lets newcomers in, by Join");
  }
  auto caller = options_.tls->CheckPeer(certificate);
  if (!caller.ok()) {
    options_.audit->Refused("unknown", "", method,
                            std::string(caller.status().message()));
    return ToGrpc(caller.status());
  }
  absl::Status allowed = absl::OkStatus();
  if (rule == nullptr || !rule->roles.Has(caller->role)) {
    allowed = absl::PermissionDeniedError(absl::StrCat(
        IdentityUri(*caller), " may not call ", method.substr(0, 200), ": ",
        ToAbsl(RoleName(caller->role)), " has no right to it"));
  } else {
    allowed = CheckRate(*caller);
  }
  if (!allowed.ok()) {
    options_.audit->Refused(IdentityUri(*caller), "", method,
                            std::string(allowed.message()));
  }
  return ToGrpc(allowed);
}

absl::Status AccessControl::CheckRate(const Identity& caller) {
  const SteadyTime now = options_.clock->Steady();
  std::lock_guard lock(mutex_);
  if (rates_.size() > kMaxCallers) rates_.clear();
  RateLimit& rate =
      rates_
          .try_emplace(IdentityUri(caller), kCallsPerSecond, kCallsAtOnce, now)
          .first->second;
  if (rate.Take(1, now)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("more than ", kCallsPerSecond, " calls a second"));
}

void AccessControl::Began(grpc::ServerContextBase* context) {
  const std::string peer = context->peer();
  if (options_.on_allowed) options_.on_allowed(peer);
  if (options_.tls == nullptr || options_.newcomers) return;
  LiveCall call = {PeerCertificate(*context), PeerName(*context), peer};
  std::lock_guard lock(mutex_);
  live_[context] = std::move(call);
}

void AccessControl::Ended(grpc::ServerContextBase* context) {
  std::lock_guard lock(mutex_);
  live_.erase(context);
}

void AccessControl::EndStale() {
  if (options_.tls == nullptr) return;
  std::map<std::string, absl::Status> judged;  // by certificate
  std::lock_guard lock(mutex_);
  for (auto it = live_.begin(); it != live_.end();) {
    const LiveCall& call = it->second;
    auto verdict = judged.find(call.certificate);
    if (verdict == judged.end()) {
      verdict = judged
                    .emplace(call.certificate,
                             options_.tls->CheckPeer(call.certificate).status())
                    .first;
    }
    if (verdict->second.ok()) {
      ++it;
      continue;
    }
    LOG(kWarning) << LogEvent("call_ended") << LogPeer(call.who)
                  << LogReason(std::string(verdict->second.message()))
                  << "ending a call of " << call.who << ": "
                  << verdict->second.message();
    options_.audit->Refused(call.who, call.from, "a call that went on",
                            std::string(verdict->second.message()));
    it->first->TryCancel();
    it = live_.erase(it);
  }
}

}  // namespace regatta
