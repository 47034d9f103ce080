#include "tests/security/test_lab.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/tls_folder.h"
#include "base/check.h"
#include "proto/security/credentials_service.h"

namespace regatta::testing {

TestLab::TestLab(const std::string& lab) : lab_(lab) {
  const absl::Status made =
      Authority::Init(authority_dir(), lab, RealClock().Wall());
  CHECK(made.ok()) << made.message();
  auto opened = Authority::Open(authority_dir());
  CHECK(opened.ok()) << opened.status().message();
  authority_ = *std::move(opened);
}

std::string TestLab::Folder(const Identity& identity, absl::Time now,
                            absl::Duration life) {
  const std::string dir = absl::StrCat(temp_.path(), "/tls", ++folders_);
  const PrivateKey key = PrivateKey::Generate();
  auto issued =
      authority_->Issue(identity, PublicKey::Of(key), now, life, "test");
  CHECK(issued.ok()) << issued.status().message();
  CHECK(MakeTlsFolder(dir).ok());
  CHECK(WriteAuthorities(dir, authority_->certificate().Pem()).ok());
  CHECK(WritePair(dir, key, issued->chain_pem).ok());
  return dir;
}

std::shared_ptr<TlsIdentity> TestLab::Open(const std::string& folder,
                                           const Clock& clock) {
  auto tls = TlsIdentity::Open(folder, AnyRole(), clock);
  CHECK(tls.ok()) << tls.status().message();
  return *std::move(tls);
}

LabTracker::LabTracker(TestLab* lab, const GateLimits& gate,
                       const TrackerOptions& options)
    : folder_(lab->Folder(Role::kTracker, "t1")), tls_(lab->Open(folder_)) {
  auto audit =
      AuditLog::Open(lab->dir() + "/audit.jsonl", "tracker", RealClock());
  CHECK(audit.ok()) << audit.status().message();
  audit_ = *std::move(audit);
  TrackerSecurity security;
  security.tls = tls_;
  security.audit = audit_.get();
  security.authority = &lab->authority();
  security.enrol = "127.0.0.1:0";
  security.gate = gate;
  auto started = TrackerService::Start("127.0.0.1:0", options, RealClock(),
                                       random_, store_, security);
  CHECK(started.ok()) << started.status().message();
  service_ = *std::move(started);
}

LabTracker::~LabTracker() = default;

std::string LabTracker::AuditText() const {
  std::string text;
  const auto newest = audit_->Newest(10'000);
  for (const v1::AuditEntry& entry : *newest) {
    absl::StrAppend(&text, entry.who(), " | ", entry.from(), " | ",
                    entry.what(), " | ", entry.result(), " | ", entry.count(),
                    "\n");
  }
  return text;
}

bool LabTracker::Audited(const std::vector<std::string>& parts) const {
  const auto newest = audit_->Newest(10'000);
  for (const v1::AuditEntry& entry : *newest) {
    const std::string line =
        absl::StrCat(entry.who(), " | ", entry.from(), " | ", entry.what(),
                     " | ", entry.result());
    if (std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
          return line.find(part) != line.npos;
        })) {
      return true;
    }
  }
  return false;
}

std::shared_ptr<grpc::Channel> Dial(const std::string& address,
                                    const std::shared_ptr<TlsIdentity>& tls,
                                    RoleSet peers) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, MakeChannelCredentials(tls, peers),
                                   arguments);
}

grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing("");
  const auto call =
      stub.PrepareUnaryCall(&context, absl::StrCat("/regatta.v1.", method),
                            grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  return status;
}

AgentSession::AgentSession(const std::string& address,
                           const std::shared_ptr<TlsIdentity>& tls)
    : stub_(v1::FleetService::NewStub(Dial(address, tls))) {
  context_.set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(120));
  stream_ = stub_->Session(&context_);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello.mutable_hello()->set_agent_id(tls->self().name);
  hello.mutable_hello()->set_instance_id("i");
  stream_->Write(hello);
  v1::TrackerMessage welcome;
  EXPECT_TRUE(stream_->Read(&welcome));
}

bool AgentSession::Answers() {
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_sequence(7);
  v1::TrackerMessage ack;
  return stream_->Write(beat) && stream_->Read(&ack) &&
         ack.heartbeat_ack().sequence() == 7;
}

grpc::Status AgentSession::End() {
  v1::TrackerMessage message;
  while (stream_->Read(&message)) {
  }
  return stream_->Finish();
}

}  // namespace regatta::testing
