// Identities, certificates, requests and what trust makes of them.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/certs/certificate.h"
#include "base/certs/identity.h"
#include "base/certs/issue.h"
#include "base/certs/revocation_list.h"
#include "base/certs/trust.h"

namespace regatta {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kWeek = absl::Hours(24 * 7);

Identity Agent(const std::string& name) {
  return {.lab = "lab", .role = Role::kAgent, .name = name, .device_class = ""};
}

struct Lab {
  explicit Lab(const std::string& name = "lab")
      : key(PrivateKey::Generate()),
        certificate(
            MakeAuthorityCertificate(key, name, kNow, absl::Hours(24 * 365))) {}
  Certificate Issue(const Identity& identity, absl::Time at = kNow) const {
    return IssueCertificate(certificate, key,
                            PublicKey::Of(PrivateKey::Generate()), identity, at,
                            kWeek);
  }
  PrivateKey key;
  Certificate certificate;
};

absl::Status Judge(const Lab& lab, const Certificate& certificate,
                   absl::Time now = kNow,
                   std::optional<RevocationList> revoked = std::nullopt) {
  auto trust = Trust::Make({lab.certificate}, std::move(revoked));
  EXPECT_TRUE(trust.ok()) << trust.status().message();
  return trust->Check(certificate, now).status();
}

TEST(IdentityTest, EveryRoleReadsBackFromItsUri) {
  for (const Role role : kAllRoles) {
    Identity identity{
        .lab = "lab-1", .role = role, .name = "n.1_x", .device_class = ""};
    if (role == Role::kAgent) identity.device_class = "znver4-2c";
    const auto read = ParseIdentityUri(IdentityUri(identity));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, identity);
  }
  EXPECT_EQ(IdentityUri(Agent("board7")), "regatta://lab/agent/board7");
}

TEST(IdentityTest, WhatIsNoIdentityIsRefused) {
  for (const char* uri :
       {"", "regatta://", "regatta://lab/agent", "regatta://lab/agent/",
        "regatta://lab/agent/a/b", "regatta://lab/king/a", "http://lab/agent/a",
        "regatta://lab/agent/a b", "regatta:///agent/a",
        "regatta://lab/agent/a?class=", "regatta://lab/server/a?class=c",
        "regatta://lab/agent/a?class=c&x=1", "REGATTA://lab/agent/a"}) {
    EXPECT_FALSE(ParseIdentityUri(uri).ok()) << uri;
  }
  EXPECT_FALSE(
      ParseIdentityUri("regatta://lab/agent/" + std::string(129, 'a')).ok());
}

TEST(RoleSetTest, HoldsWhatWasPutIn) {
  const RoleSet set = RoleSet{Role::kViewer} | RoleSet{Role::kTracker};
  EXPECT_TRUE(set.Has(Role::kViewer));
  EXPECT_TRUE(set.Has(Role::kTracker));
  EXPECT_FALSE(set.Has(Role::kAdmin));
  EXPECT_FALSE(RoleSet{}.Has(Role::kViewer));
}

TEST(TrustTest, AnIssuedCertificateCountsAndSaysWhoItIsOf) {
  const Lab lab;
  auto trust = Trust::Make({lab.certificate}, std::nullopt);
  ASSERT_TRUE(trust.ok());
  const auto who = trust->Check(lab.Issue(Agent("a1")), kNow);
  ASSERT_TRUE(who.ok()) << who.status().message();
  EXPECT_EQ(*who, Agent("a1"));
}

TEST(TrustTest, AnotherAuthoritysCertificateDoesNot) {
  const Lab lab, other;  // of the same name, with another key
  const absl::Status judged = Judge(lab, other.Issue(Agent("a1")));
  EXPECT_EQ(judged.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(judged.message().find("no authority"), judged.message().npos)
      << judged.message();
}

TEST(TrustTest, DatesBoundIt) {
  const Lab lab;
  const Certificate certificate = lab.Issue(Agent("a1"));
  EXPECT_TRUE(Judge(lab, certificate, kNow - kClockSlack).ok());
  EXPECT_TRUE(Judge(lab, certificate, kNow + kWeek - absl::Seconds(1)).ok());
  for (const absl::Time bad : {kNow - kClockSlack - absl::Seconds(1),
                               kNow + kWeek, absl::UnixEpoch()}) {
    const absl::Status judged = Judge(lab, certificate, bad);
    EXPECT_EQ(judged.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_NE(judged.message().find("is valid from"), judged.message().npos)
        << judged.message();
  }
}

TEST(TrustTest, ACertificateWithoutOneProperUriDoesNotCount) {
  const Lab lab;
  // The authority's own has none.
  EXPECT_EQ(Judge(lab, lab.certificate).code(),
            absl::StatusCode::kUnauthenticated);
  // Of a lab that its authority is not of.
  Identity foreign = Agent("a1");
  foreign.lab = "elsewhere";
  const absl::Status judged = Judge(lab, lab.Issue(foreign));
  EXPECT_EQ(judged.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(judged.message().find("elsewhere"), judged.message().npos);
}

TEST(TrustTest, AnIssuedCertificateIsNoAuthority) {
  const Lab lab;
  // Somebody signs with the key of an ordinary certificate.
  const PrivateKey key = PrivateKey::Generate();
  const Certificate ordinary = IssueCertificate(
      lab.certificate, lab.key, PublicKey::Of(key), Agent("a1"), kNow, kWeek);
  const Certificate forged = IssueCertificate(
      ordinary, key, PublicKey::Of(PrivateKey::Generate()),
      {.lab = "a1", .role = Role::kAdmin, .name = "me", .device_class = ""},
      kNow, kWeek);
  EXPECT_EQ(Judge(lab, forged).code(), absl::StatusCode::kUnauthenticated);
}

TEST(TrustTest, TwoAuthoritiesCountWhileOneTakesOver) {
  const Lab before, after;
  auto trust =
      Trust::Make({before.certificate, after.certificate}, std::nullopt);
  ASSERT_TRUE(trust.ok());
  EXPECT_TRUE(trust->Check(before.Issue(Agent("a1")), kNow).ok());
  EXPECT_TRUE(trust->Check(after.Issue(Agent("a2")), kNow).ok());
}

TEST(RevocationListTest, RevokesWhatItListsAndNothingElse) {
  const Lab lab;
  const Certificate bad = lab.Issue(Agent("a1")), good = lab.Issue(Agent("a2"));
  const auto list =
      RevocationList::Make(lab.certificate, lab.key, {bad.Serial()}, 7, kNow);
  const auto read = RevocationList::FromPem(list.Pem());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->Number(), 7);
  const absl::Status judged = Judge(lab, bad, kNow, *read);
  EXPECT_EQ(judged.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(judged.message().find("revoked"), judged.message().npos);
  EXPECT_TRUE(Judge(lab, good, kNow, *read).ok());
}

TEST(RevocationListTest, OneThatSomebodyElseSignedIsRefused) {
  const Lab lab, other;
  const auto forged =
      RevocationList::Make(other.certificate, other.key, {}, 9, kNow);
  EXPECT_EQ(Trust::Make({lab.certificate}, forged).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RequestTest, GivesBackTheKeyThatSignedIt) {
  const PrivateKey key = PrivateKey::Generate();
  const auto read = PublicKey::OfRequest(MakeCertificateRequest(key));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Lab lab;
  EXPECT_TRUE(
      IssueCertificate(lab.certificate, lab.key, *read, Agent("a"), kNow, kWeek)
          .BelongsTo(key));
}

TEST(RequestTest, ADamagedOneIsRefused) {
  const std::string good = MakeCertificateRequest(PrivateKey::Generate());
  EXPECT_FALSE(PublicKey::OfRequest("").ok());
  EXPECT_FALSE(
      PublicKey::OfRequest("-----BEGIN CERTIFICATE REQUEST-----").ok());
  int accepted = 0;
  // But for the last four digits, some of whose bits stand for nothing.
  const size_t begin = good.find('\n') + 1, end = good.rfind("-----END") - 5;
  for (size_t i = begin; i < end; ++i) {
    if (good[i] == '\n' || good[i] == '=') continue;
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    accepted += PublicKey::OfRequest(bad).ok() ? 1 : 0;
  }
  EXPECT_EQ(accepted, 0);
}

TEST(CertificateTest, SerialsDifferAndHaveOneLength) {
  const Lab lab;
  const std::string one = lab.Issue(Agent("a")).Serial();
  const std::string two = lab.Issue(Agent("a")).Serial();
  EXPECT_NE(one, two);
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(two.size(), 32u);
}

TEST(CertificateTest, GarbageIsNoCertificate) {
  EXPECT_FALSE(Certificate::FromPem("").ok());
  EXPECT_FALSE(Certificate::FromPem("hello").ok());
  const std::string pem = Lab().certificate.Pem();
  EXPECT_FALSE(Certificate::FromPem(pem.substr(0, pem.size() / 2)).ok());
}

}  // namespace
}  // namespace regatta
