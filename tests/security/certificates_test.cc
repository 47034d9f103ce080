// Identities, certificates, requests and what trust makes of them.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <string>
#include <vector>

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
                   const std::vector<RevocationList>& revoked = {}) {
  return Trust::Make({lab.certificate}, revoked)
      .Check(certificate, now)
      .status();
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
  const Trust trust = Trust::Make({lab.certificate});
  const auto who = trust.Check(lab.Issue(Agent("a1")), kNow);
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
  const Certificate old_bad = before.Issue(Agent("a1"));
  const Certificate new_bad = after.Issue(Agent("a2"));
  const auto list = [](const Lab& lab, const Certificate& bad, int64_t number) {
    return RevocationList::Make(lab.certificate, lab.key, {bad.Serial()},
                                number, kNow);
  };
  const auto empty =
      RevocationList::Make(after.certificate, after.key, {}, 1, kNow);
  // The numbers of two authorities have nothing to do with one another.
  const Trust trust = Trust::Make(
      {before.certificate, after.certificate},
      {empty, list(before, old_bad, 9), list(after, new_bad, 2), empty});
  EXPECT_TRUE(trust.Check(before.Issue(Agent("a1")), kNow).ok());
  EXPECT_TRUE(trust.Check(after.Issue(Agent("a2")), kNow).ok());
  EXPECT_FALSE(trust.Check(old_bad, kNow).ok());
  EXPECT_FALSE(trust.Check(new_bad, kNow).ok());
  // The lists read back, and that of a removed authority goes with it.
  const auto read = RevocationList::AllFromPem(trust.RevokedPem());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->size(), 2u);
  const Trust later = Trust::Make({after.certificate}, *read);
  EXPECT_EQ(later.revoked().size(), 1u);
  EXPECT_FALSE(later.Check(new_bad, kNow).ok());
}

TEST(RevocationListTest, RevokesWhatItListsAndNothingElse) {
  const Lab lab;
  const Certificate bad = lab.Issue(Agent("a1")), good = lab.Issue(Agent("a2"));
  const auto list =
      RevocationList::Make(lab.certificate, lab.key, {bad.Serial()}, 7, kNow);
  const auto read = RevocationList::FromPem(list.Pem());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->Number(), 7);
  const absl::Status judged = Judge(lab, bad, kNow, {*read});
  EXPECT_EQ(judged.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(judged.message().find("revoked"), judged.message().npos);
  EXPECT_TRUE(Judge(lab, good, kNow, {*read}).ok());
}

TEST(RevocationListTest, OneThatSomebodyElseSignedCountsForNothing) {
  const Lab lab, other;
  const Certificate good = lab.Issue(Agent("a1"));
  const auto forged = RevocationList::Make(other.certificate, other.key,
                                           {good.Serial()}, 9, kNow);
  EXPECT_TRUE(Trust::Make({lab.certificate}, {forged}).revoked().empty());
  EXPECT_TRUE(Judge(lab, good, kNow, {forged}).ok());
}

TEST(RevocationListTest, ADamagedOneIsNotPassedOver) {
  const Lab lab;
  const std::string pem =
      RevocationList::Make(lab.certificate, lab.key, {}, 1, kNow).Pem();
  EXPECT_EQ(RevocationList::AllFromPem(pem + pem)->size(), 2u);
  EXPECT_TRUE(RevocationList::AllFromPem("")->empty());
  for (const std::string& bad :
       {pem + pem.substr(0, pem.size() / 2), std::string("garbage"),
        "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n" + pem}) {
    EXPECT_FALSE(RevocationList::AllFromPem(bad).ok()) << bad;
  }
}

TEST(PrivateKeyTest, OnlyP256IsTaken) {
  for (const char* kind : {"RSA", "P-384"}) {
    EVP_PKEY* raw =
        std::string(kind) == "RSA" ? EVP_RSA_gen(2048) : EVP_EC_gen(kind);
    ASSERT_NE(raw, nullptr);
    BIO* bytes = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bytes, raw, nullptr, nullptr, 0, nullptr, nullptr);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bytes, &data);
    const auto key = PrivateKey::FromPem({data, static_cast<size_t>(size)});
    EXPECT_EQ(key.status().message(), "the key is not ECDSA on P-256") << kind;
    BIO_free(bytes);
    EVP_PKEY_free(raw);
  }
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
