#include "proto/security/access_service.h"

#include <grpc/grpc_security_constants.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "proto/grpc_status_service.h"

namespace regatta {
namespace {

// More than a daemon has connections.
constexpr size_t kMaxCallers = 32'768;

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  if (values.size() != 1) return "";
  return std::string(values.front().data(), values.front().size());
}

// Who a certificate is of that counts no longer, but whose key was proven.
std::string Named(const std::string& pem) {
  const auto certificate = Certificate::FromPem(pem);
  if (!certificate.ok()) return "unknown";
  const auto identity = certificate->GetIdentity();
  return identity.ok() ? IdentityUri(*identity) : "unknown";
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
      if (status.ok()) access_->Succeeded(context);
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

void AccessControl::Refused(const std::string& who, const std::string& method,
                            const std::string& why) {
  options_.audit->Refused(who, options_.from ? options_.from(who) : "", method,
                          why);
}

grpc::Status AccessControl::Decide(const std::string& path,
                                   const std::string& certificate) {
  const std::string method = Method(path);
  const MethodRule* rule = FindMethodRule(method);
  if (options_.newcomers) {
    if (rule != nullptr && rule->newcomers) return grpc::Status::OK;
    Refused("newcomer", method, "only Join is open here");
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                        "this port only lets newcomers in, by Join");
  }
  const auto judged = options_.tls->JudgePeer(certificate);
  if (!judged.ok()) {
    Refused(Named(certificate), method, std::string(judged.status().message()));
    return ToGrpc(judged.status());
  }
  const Identity& caller = judged->identity;
  absl::Status allowed = absl::OkStatus();
  if (rule == nullptr || !rule->roles.Has(caller.role)) {
    allowed = absl::PermissionDeniedError(absl::StrCat(
        IdentityUri(caller), " may not call ", method.substr(0, 200), ": ",
        ToAbsl(RoleName(caller.role)), " has no right to it"));
  } else {
    allowed = Admit(*judged, certificate);
  }
  if (!allowed.ok()) {
    Refused(IdentityUri(caller), method, std::string(allowed.message()));
  }
  return ToGrpc(allowed);
}

absl::Status AccessControl::Admit(const TlsIdentity::Judged& caller,
                                  const std::string& certificate) {
  const SteadyTime now = options_.clock->Steady();
  std::lock_guard lock(mutex_);
  if (callers_.size() > kMaxCallers) callers_.clear();
  Caller& known =
      callers_
          .try_emplace(IdentityUri(caller.identity),
                       Caller{{kCallsPerSecond, kCallsAtOnce, now}, {}})
          .first->second;
  if (caller.not_after > known.newest.not_after || known.newest.pem.empty()) {
    known.newest = {certificate, caller.not_after, caller.by};
  }
  if (known.rate.Take(1, now)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("more than ", kCallsPerSecond, " calls a second"));
}

absl::StatusOr<AccessControl::Shown> AccessControl::Judge(
    const std::string& pem) {
  ASSIGN_OR_RETURN(const TlsIdentity::Judged judged,
                   options_.tls->JudgePeer(pem));
  return Shown{pem, judged.not_after, judged.by};
}

void AccessControl::Began(grpc::ServerContextBase* context) {
  if (options_.newcomers) return;  // anybody may try
  const std::string peer = context->peer();
  const std::string who = PeerName(*context);
  if (options_.on_allowed) options_.on_allowed(peer, who);
  if (options_.tls == nullptr) return;
  const std::string pem = PeerCertificate(*context);
  auto judged = Judge(pem);
  // Revoked in this moment: for EndStale to end.
  if (!judged.ok()) judged = Shown{pem, absl::InfiniteFuture(), nullptr};
  std::lock_guard lock(mutex_);
  live_[context] = {++calls_, *std::move(judged), who, peer};
}

void AccessControl::Succeeded(grpc::ServerContextBase* context) {
  if (options_.newcomers && options_.on_allowed) {
    options_.on_allowed(context->peer(), PeerName(*context));
  }
}

void AccessControl::Ended(grpc::ServerContextBase* context) {
  std::lock_guard lock(mutex_);
  live_.erase(context);
}

absl::StatusOr<AccessControl::Shown> AccessControl::JudgeAnew(
    const Shown& shown, const std::string& who) {
  auto judged = Judge(shown.pem);
  if (judged.ok() || shown.not_after >= options_.clock->Wall()) return judged;
  // Expired, and good until then. Its owner may have renewed it.
  std::string newest;
  {
    std::lock_guard lock(mutex_);
    if (const auto caller = callers_.find(who); caller != callers_.end()) {
      newest = caller->second.newest.pem;
    }
  }
  if (newest.empty() || newest == shown.pem) return judged;
  auto next = Judge(newest);
  return next.ok() ? next : judged;
}

void AccessControl::EndStale() {
  if (options_.tls == nullptr) return;
  const auto material = options_.tls->material();
  const absl::Time now = options_.clock->Wall();
  std::vector<std::pair<grpc::ServerContextBase*, LiveCall>> doubtful;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [context, call] : live_) {
      if (!call.certificate.Holds(material.get(), now)) {
        doubtful.emplace_back(context, call);
      }
    }
  }
  // Judging costs, and calls begin and end meanwhile.
  std::vector<absl::StatusOr<Shown>> verdicts;
  for (const auto& [context, call] : doubtful) {
    verdicts.push_back(JudgeAnew(call.certificate, call.who));
  }
  for (size_t i = 0; i < doubtful.size(); ++i) {
    const auto& [context, call] = doubtful[i];
    if (!Settle(context, call.number, verdicts[i])) continue;
    const std::string why(verdicts[i].status().message());
    LOG(kWarning) << LogEvent("call_ended") << LogPeer(call.who)
                  << LogReason(why) << "ending a call of " << call.who << ": "
                  << why;
    options_.audit->Refused(call.who, call.from, "a call that went on", why);
  }
}

bool AccessControl::Settle(grpc::ServerContextBase* context, uint64_t number,
                           const absl::StatusOr<Shown>& verdict) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(context);
  if (found == live_.end() || found->second.number != number) return false;
  if (verdict.ok()) {
    found->second.certificate = *verdict;
    return false;
  }
  context->TryCancel();
  live_.erase(found);
  return true;
}

}  // namespace regatta
