// A tracker over mutual TLS on loopback: who is let in, who is not, and what is
// written down about it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/tls_folder.h"
#include "base/host_port.h"
#include "base/replace_file.h"
#include "device_agent/agent_security.h"
#include "proto/security/credentials_service.h"
#include "proto/security/enrolment_client.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

constexpr char kList[] = "DispatchService/ListDevices";

std::shared_ptr<TlsIdentity> OpenLoosely(const std::string& dir,
                                         const Clock& clock) {
  auto tls = TlsIdentity::Open(dir, AnyRole(), clock);
  EXPECT_TRUE(tls.ok()) << tls.status().message();
  return *std::move(tls);
}

// What a client that shows the folder's certificate, and checks nothing, meets.
struct Probe {
  int version = 0;        // agreed on; 0: no handshake
  bool answered = false;  // by the first bytes of HTTP/2
};
Probe Handshake(const std::string& address, const std::string& dir,
                int version) {
  const auto host_port = *SplitHostPort(address);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, version);
  SSL_CTX_set_max_proto_version(context, version);
  SSL_CTX_use_certificate_chain_file(context, (dir + "/cert.pem").c_str());
  SSL_CTX_use_PrivateKey_file(context, (dir + "/key.pem").c_str(),
                              SSL_FILETYPE_PEM);
  const unsigned char alpn[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context, alpn, sizeof alpn);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(host_port.second));
  inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
  Probe probe;
  if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) {
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    char byte;
    if (SSL_connect(ssl) == 1) {
      probe.version = SSL_version(ssl);
      probe.answered = SSL_read(ssl, &byte, 1) == 1;
    }
    SSL_free(ssl);
  }
  SSL_CTX_free(context);
  close(fd);
  return probe;
}

class TlsTrackerTest : public ::testing::Test {
 protected:
  grpc::StatusCode List(const std::shared_ptr<TlsIdentity>& tls) {
    return CallEmpty(Dial(tracker_.address(), tls), kList).error_code();
  }
  bool AuditedSoon(const std::vector<std::string>& parts) {
    return WaitFor(absl::Seconds(10), [&] { return tracker_.Audited(parts); });
  }

  TestLab lab_;
  LabTracker tracker_{&lab_};
};

TEST_F(TlsTrackerTest, WhoHasACertificateOfTheLabIsLetIn) {
  EXPECT_EQ(List(lab_.Open(Role::kViewer, "vera")), grpc::StatusCode::OK);
}

TEST_F(TlsTrackerTest, WithoutACertificateNobodyIsLetInAndItIsAudited) {
  const auto channel = grpc::CreateCustomChannel(
      tracker_.address(),
      MakeNewcomerCredentials(lab_.authority().certificate().Fingerprint(),
                              RealClock()),
      grpc::ChannelArguments());
  EXPECT_EQ(CallEmpty(channel, kList).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(AuditedSoon({"127.0.0.1", "connection", "ended without a call"}))
      << tracker_.AuditText();
}

TEST_F(TlsTrackerTest, PlainTextGetsNoAnswer) {
  EXPECT_EQ(List(nullptr), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(List(lab_.Open(Role::kViewer, "vera")), grpc::StatusCode::OK);
}

TEST_F(TlsTrackerTest, AnotherAuthoritysCertificateIsRefusedAndAudited) {
  TestLab other;
  // It trusts our tracker, which the tracker does not return.
  const std::string dir = other.Folder(Role::kAdmin, "mallory");
  const std::string own = ReadFile(dir + "/ca.pem");
  WriteFile(dir + "/ca.pem", own + lab_.authority().certificate().Pem());
  EXPECT_EQ(List(OpenLoosely(dir, RealClock())), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(AuditedSoon({"claims to be regatta://lab/admin/mallory",
                           "127.0.0.1", "handshake", "no authority"}))
      << tracker_.AuditText();
}

TEST_F(TlsTrackerTest, AnExpiredCertificateIsRefusedAndAudited) {
  const absl::Time then = RealClock().Wall() - absl::Hours(24 * 8);
  const std::string dir = lab_.Folder(
      {.lab = "lab", .role = Role::kAdmin, .name = "late", .device_class = ""},
      then);
  // The refusal comes after the client's part of the handshake is over.
  EXPECT_FALSE(Handshake(tracker_.address(), dir, TLS1_3_VERSION).answered);
  EXPECT_TRUE(
      AuditedSoon({"regatta://lab/admin/late", "handshake", "is valid from"}))
      << tracker_.AuditText();
}

TEST_F(TlsTrackerTest, ACertificateThatNamesNobodyOfTheLabIsRefused) {
  // Signed by the lab, but for another lab's name.
  const std::string dir = lab_.Folder(
      {.lab = "lab2", .role = Role::kAdmin, .name = "x", .device_class = ""});
  EXPECT_FALSE(Handshake(tracker_.address(), dir, TLS1_3_VERSION).answered);
  EXPECT_TRUE(AuditedSoon({"regatta://lab2/admin/x", "handshake", "lab2"}))
      << tracker_.AuditText();
}

TEST_F(TlsTrackerTest, AnAgentsCertificateIsNoTrackers) {
  // A rogue board poses as the tracker: the client looks at the role.
  Random random(1);
  MemoryFleetStore store;
  TrackerSecurity security;
  security.tls = lab_.Open(Role::kAgent, "rogue");
  auto impostor = TrackerService::Start("127.0.0.1:0", {}, RealClock(), random,
                                        store, security);
  ASSERT_TRUE(impostor.ok());
  const grpc::Status status = CallEmpty(
      Dial((*impostor)->address(), lab_.Open(Role::kServer, "s1")), kList);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTrackerTest, NothingOlderThanTls13IsSpoken) {
  const std::string dir = lab_.Folder(Role::kViewer, "vera");
  for (const std::string& port : {tracker_.address(), tracker_.enrol()}) {
    const Probe now = Handshake(port, dir, TLS1_3_VERSION);
    EXPECT_EQ(now.version, TLS1_3_VERSION);
    EXPECT_TRUE(now.answered);
    EXPECT_EQ(Handshake(port, dir, TLS1_2_VERSION).version, 0);
    EXPECT_EQ(Handshake(port, dir, TLS1_1_VERSION).version, 0);
  }
}

TEST_F(TlsTrackerTest, ARevokedCertificateIsRefusedAndItsSessionEnds) {
  const auto tls = lab_.Open(Role::kAgent, "a1");
  const auto stub = v1::FleetService::NewStub(Dial(tracker_.address(), tls));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(90));
  const auto stream = stub->Session(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello.mutable_hello()->set_agent_id("a1");
  hello.mutable_hello()->set_instance_id("i");
  ASSERT_TRUE(stream->Write(hello));
  v1::TrackerMessage welcome;
  ASSERT_TRUE(stream->Read(&welcome));

  const auto revoked = std::chrono::steady_clock::now();
  ASSERT_TRUE(lab_.authority()
                  .Revoke("agent/a1", "stolen", RealClock().Wall(), "t")
                  .ok());
  while (stream->Read(&welcome)) {
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - revoked)
          .count();
  EXPECT_FALSE(stream->Finish().ok());
  std::cout << "a session of a revoked certificate ended after " << seconds
            << " s\n";
  EXPECT_LT(seconds, 60);
  EXPECT_EQ(List(tls), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(AuditedSoon(
      {"regatta://lab/agent/a1", "a call that went on", "is revoked"}))
      << tracker_.AuditText();
  EXPECT_TRUE(
      AuditedSoon({"regatta://lab/agent/a1", "handshake", "is revoked"}));
  EXPECT_EQ(List(lab_.Open(Role::kViewer, "vera")), grpc::StatusCode::OK);
}

TEST_F(TlsTrackerTest, ARefusedCallIsAuditedWithWhereItIsFrom) {
  EXPECT_EQ(List(lab_.Open(Role::kAgent, "a1")),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(AuditedSoon({"regatta://lab/agent/a1", "127.0.0.1", kList}))
      << tracker_.AuditText();
}

TEST_F(TlsTrackerTest, ASessionOutlivesACertificateThatWasRenewed) {
  const auto agent = [this](const std::string& name, absl::Duration life) {
    return lab_.Open(lab_.Folder(
        {.lab = "lab", .role = Role::kAgent, .name = name, .device_class = ""},
        RealClock().Wall(), life));
  };
  const auto begin = std::chrono::steady_clock::now();
  AgentSession renewed(tracker_.address(), agent("a1", absl::Seconds(4)));
  AgentSession lapsed(tracker_.address(), agent("a2", absl::Seconds(4)));
  // As a daemon that asks for revocations with its next certificate.
  CertificateClient next(tracker_.address(), agent("a1", absl::Hours(24)));
  EXPECT_TRUE(next.GetRevocations().ok());
  v1::TrackerMessage message;
  while (lapsed.stream().Read(&message)) {
  }
  EXPECT_FALSE(lapsed.stream().Finish().ok());
  // Ended in the same sweep as the other would have been, or a later one.
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_TRUE(renewed.Answers());
  EXPECT_TRUE(AuditedSoon({"agent/a2", "a call that went on"}));
  EXPECT_FALSE(tracker_.Audited({"agent/a1", "a call that went on"}))
      << tracker_.AuditText();
  // A revocation ends it all the same.
  ASSERT_TRUE(
      lab_.authority().Revoke("agent/a1", "", RealClock().Wall(), "t").ok());
  while (renewed.stream().Read(&message)) {
  }
  EXPECT_FALSE(renewed.stream().Finish().ok());
  EXPECT_TRUE(AuditedSoon({"agent/a1", "a call that went on"}));
}

TEST_F(TlsTrackerTest, AnAgentThatSaysAnothersNameIsRefusedAndAudited) {
  const auto stub = v1::FleetService::NewStub(
      Dial(tracker_.address(), lab_.Open(Role::kAgent, "a1")));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  const auto stream = stub->Session(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello.mutable_hello()->set_agent_id("a2");
  hello.mutable_hello()->set_instance_id("i");
  stream->Write(hello);
  v1::TrackerMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(
      AuditedSoon({"regatta://lab/agent/a1", "127.0.0.1", "Hello", "agent a1"}))
      << tracker_.AuditText();
}

class JoinTest : public TlsTrackerTest {
 protected:
  absl::StatusOr<Identity> Join(const std::string& token,
                                const std::string& folder,
                                const std::string& name = "") {
    return JoinLab({.dir = lab_.dir() + "/" + folder,
                    .address = tracker_.enrol(),
                    .token = token,
                    .name = name},
                   RealClock());
  }
  AgentSecurityFlags WithToken(const std::string& folder,
                               const std::string& token) {
    AgentSecurityFlags flags;
    flags.shared.tls = folder;
    flags.join = token;
    flags.enrol = tracker_.enrol();
    return flags;
  }
  std::string Token(const std::string& name) {
    return lab_.authority()
        .MakeToken({.role = Role::kAgent, .name = name}, RealClock().Wall(),
                   kTokenLife, "test")
        ->Text();
  }
};

TEST_F(JoinTest, ANewcomerWithATokenGetsACertificateThatCounts) {
  const auto joined = Join(Token("board1"), "b1");
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_EQ(IdentityUri(*joined), "regatta://lab/agent/board1");
  const auto tls = lab_.Open(lab_.dir() + "/b1");
  // An agent may renew; it may not list devices.
  EXPECT_EQ(List(tls), grpc::StatusCode::PERMISSION_DENIED);
  CertificateClient client(tracker_.address(), tls);
  const auto early =
      client.Renew(MakeCertificateRequest(PrivateKey::Generate()));
  EXPECT_EQ(early.status().code(), absl::StatusCode::kFailedPrecondition)
      << early.status().message();
  EXPECT_TRUE(tracker_.Audited({"EnrolmentService/Join", "ok"}))
      << tracker_.AuditText();
  EXPECT_TRUE(tracker_.Audited(
      {"agent/board1", "CertificateService/Renew", "failed: certificate"}));
}

TEST_F(TlsTrackerTest, ACertificateIsRenewedOnceHalfOfItsLifeIsOver) {
  const auto tls = lab_.Open(lab_.Folder(
      {.lab = "lab", .role = Role::kAgent, .name = "a1", .device_class = ""},
      RealClock().Wall() - absl::Hours(24 * 4)));
  CertificateClient client(tracker_.address(), tls);
  const std::string request = MakeCertificateRequest(PrivateKey::Generate());
  const auto renewed = client.Renew(request);
  ASSERT_TRUE(renewed.ok()) << renewed.status().message();
  EXPECT_GT(Certificate::FromPem(renewed->chain_pem())->NotAfter(),
            RealClock().Wall() + absl::Hours(24 * 6.9));
  EXPECT_EQ(client.Renew(request).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(JoinTest, AReplayedTokenIsRefusedAndAudited) {
  const std::string token = Token("board1");
  ASSERT_TRUE(Join(token, "b1").ok());
  const auto again = Join(token, "b2");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(again.status().message().find("has been used"),
            again.status().message().npos);
  EXPECT_TRUE(HasNoIdentity(lab_.dir() + "/b2"));
  EXPECT_TRUE(AuditedSoon(
      {"newcomer", "127.0.0.1", "EnrolmentService/Join", "has been used"}))
      << tracker_.AuditText();
}

TEST(JoinGateTest, WhoFailsToJoinAgainAndAgainHasToWait) {
  TestLab lab;
  GateLimits gate;
  gate.failures_per_minute = 5;
  gate.back_off_loopback = true;
  LabTracker tracker(&lab, gate);
  const std::string wrong =
      JoinToken::Make(lab.authority().certificate().Fingerprint()).Text();
  const auto join = [&] {
    return JoinLab({.dir = lab.dir() + "/b1",
                    .address = tracker.enrol(),
                    .token = wrong,
                    .name = "b1"},
                   RealClock())
        .status()
        .code();
  };
  EXPECT_EQ(join(), absl::StatusCode::kPermissionDenied);
  // The listener looks for closed connections every second.
  EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return join() != absl::StatusCode::kPermissionDenied &&
           tracker.Audited({"127.0.0.1", "connection", "too many failed"});
  })) << tracker.AuditText();
}

TEST_F(JoinTest, ALateTokenIsRefusedAndAudited) {
  const std::string token =
      lab_.authority()
          .MakeToken({.role = Role::kAgent, .name = "b"},
                     RealClock().Wall() - absl::Minutes(16), kTokenLife, "t")
          ->Text();
  EXPECT_EQ(Join(token, "b1").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(AuditedSoon({"EnrolmentService/Join", "was valid until"}));
}

TEST_F(JoinTest, ATokenIsNotShownToAnotherLab) {
  // The token's lab is another one than the tracker's.
  TestLab other;
  const std::string token = other.authority()
                                .MakeToken({.role = Role::kAgent, .name = "b"},
                                           RealClock().Wall(), kTokenLife, "t")
                                ->Text();
  const auto refused = Join(token, "b1");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(tracker_.Audited({"EnrolmentService/Join"}))
      << tracker_.AuditText();
}

TEST_F(JoinTest, AFolderWithAnIdentityIsLeftAlone) {
  const std::string token = Token("board1");
  ASSERT_TRUE(Join(token, "b1").ok());
  const absl::Status refused = Join(Token("board2"), "b1").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("--force replaces it"),
            refused.message().npos);
}

TEST_F(JoinTest, OneThatRanOutIsReplacedAndLiesBesideTheNew) {
  const Identity board{
      .lab = "lab", .role = Role::kAgent, .name = "b1", .device_class = ""};
  const std::string folder =
      lab_.Folder(board, RealClock().Wall() - absl::Hours(24 * 10));
  const std::string old = *ReadSmallFile(folder + "/cert.pem");
  const auto refused = ReadTlsFolder(folder, RealClock().Wall());
  // What it says to do is what is done below.
  EXPECT_NE(refused.status().message().find("regatta certs token"),
            refused.status().message().npos)
      << refused.status().message();
  EXPECT_NE(WhySpent(folder, RealClock().Wall()).find("ran out"),
            std::string::npos);
  std::string id;
  const auto tls = OpenAgentIdentity(WithToken(folder, Token("b1")),
                                     tracker_.address(), &id);
  ASSERT_TRUE(tls.ok()) << tls.status().message();
  EXPECT_EQ(id, "b1");
  EXPECT_EQ(*ReadSmallFile(folder + "/cert.pem.old"), old);
  EXPECT_TRUE(AgentSession(tracker_.address(), *tls).Answers());
}

TEST_F(JoinTest, OneThatTheTrackerDoesNotTakeIsReplacedWithAToken) {
  const std::string folder = lab_.Folder(Role::kAgent, "b1");
  ASSERT_EQ(
      *lab_.authority().Revoke("agent/b1", "stolen", RealClock().Wall(), "ann"),
      1);
  // The board does not know it; the tracker does within seconds.
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return !CertificateClient(tracker_.address(), lab_.Open(folder))
                .GetRevocations()
                .ok();
  }));
  EXPECT_EQ(WhySpent(folder, RealClock().Wall()), "");
  const std::string token = Token("b1");
  std::string id;
  const auto tls =
      OpenAgentIdentity(WithToken(folder, token), tracker_.address(), &id);
  ASSERT_TRUE(tls.ok()) << tls.status().message();
  EXPECT_TRUE(AgentSession(tracker_.address(), *tls).Answers());
  // One that is taken stays, whatever the token is worth.
  const std::string kept = *ReadSmallFile(folder + "/cert.pem");
  ASSERT_TRUE(
      OpenAgentIdentity(WithToken(folder, token), tracker_.address(), &id)
          .ok());
  EXPECT_EQ(*ReadSmallFile(folder + "/cert.pem"), kept);
}

TEST_F(JoinTest, OneForLaterIsAMatterOfTheClock) {
  const Identity board{
      .lab = "lab", .role = Role::kAgent, .name = "b1", .device_class = ""};
  const std::string folder =
      lab_.Folder(board, RealClock().Wall() + absl::Hours(24));
  const auto refused = ReadTlsFolder(folder, RealClock().Wall());
  EXPECT_NE(refused.status().message().find("set the clock"),
            refused.status().message().npos)
      << refused.status().message();
  EXPECT_EQ(WhySpent(folder, RealClock().Wall()), "");
}

TEST_F(JoinTest, NothingButJoinIsOpenToNewcomers) {
  grpc::ChannelArguments arguments;
  const auto channel = grpc::CreateCustomChannel(
      tracker_.enrol(),
      MakeNewcomerCredentials(lab_.authority().certificate().Fingerprint(),
                              RealClock()),
      arguments);
  for (const char* method :
       {kList, "FleetService/Session", "CertificateService/Renew",
        "AuditService/ListAudit", "EnrolmentService/Nothing"}) {
    EXPECT_EQ(CallEmpty(channel, method).error_code(),
              grpc::StatusCode::UNAUTHENTICATED)
        << method;
  }
  EXPECT_EQ(CallEmpty(channel, "EnrolmentService/Join").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace regatta::testing
