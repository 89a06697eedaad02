PRAGMA application_id = 1397572434;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL UNIQUE,
    gap REAL NOT NULL,                     -- seconds from slot to slot
    strain REAL NOT NULL DEFAULT 1,        -- how many times longer, while the host backs off
    strained REAL NOT NULL DEFAULT 0,      -- when that grew last
    next REAL NOT NULL DEFAULT 0,          -- the next free slot
    asked REAL NOT NULL DEFAULT 0,         -- until then somebody is reading robots.txt
    met REAL,                              -- when robots.txt was read
    robots TEXT,                           -- rules, none or down
    robots_text BLOB,
    robots_detail TEXT
);
INSERT INTO "host" VALUES(1,'http://127.0.0.1:36967',0.0,1.0,0.0,1.79531416656173372272e+09,0.0,1.79531415794541621211e+09,'rules',X'557365722D6167656E743A202A0A446973616C6C6F773A202F6261736B65740A446973616C6C6F773A202F2A3F736F72743D0A536974656D61703A20687474703A2F2F3132372E302E302E313A33363936372F6F6C642D736974656D61702E786D6C0A','');
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,             -- of the settings that decide what is found and listed
    reading TEXT NOT NULL,                 -- of those that decide what is read from a page
    started REAL NOT NULL,
    status TEXT NOT NULL,                  -- crawling, complete, concluded, abandoned
    discovered INTEGER NOT NULL DEFAULT 0  -- counted as URLs come in; the balance is held against it
);
INSERT INTO "run" VALUES(1,'29f5f344db95a3febe2a45d03e5ff864','d739690fcb62c92fef5886eece020d5a',1.79531415793433880801e+09,'concluded',65);
INSERT INTO "run" VALUES(2,'29f5f344db95a3febe2a45d03e5ff864','d739690fcb62c92fef5886eece020d5a',1.79531416185473608965e+09,'concluded',65);
CREATE TABLE url (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL,                  -- the last run that found it
    state INTEGER NOT NULL,                -- 0 queued, 1 waiting, 2 leased, 3 settled
    host INTEGER,                          -- NULL: not to be asked for
    depth INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    via INTEGER,                           -- the page that named it first
    attempts INTEGER NOT NULL DEFAULT 0,
    token INTEGER,                         -- of the lease
    due REAL,                              -- waiting: until then; leased: ours until then
    outcome TEXT,
    detail TEXT,
    settled REAL,
    learned INTEGER,                       -- the run that the facts below are from
    status INTEGER,
    etag TEXT,
    modified TEXT,
    lastmod INTEGER,
    source TEXT,
    header INTEGER,                        -- the date of Last-Modified
    fresh INTEGER,                         -- 1: that is the time of the request
    stated INTEGER,                        -- the date that the page states
    content TEXT,                          -- fingerprint; kept over failures
    moved INTEGER,                         -- when a run saw another fingerprint than the one before
    slid INTEGER,                          -- 1: the header moved though the content did not; NULL: not compared
    was TEXT,                              -- the outcome in the run before
    was_lastmod INTEGER,
    links TEXT                             -- JSON array of ids; below zero: nofollow
);
INSERT INTO "url" VALUES(1,'http://127.0.0.1:36967/',2,3,1,0,0,NULL,1,NULL,NULL,'listed',NULL,1.79531416186689376829e+09,2,200,NULL,'Mon, 01 Sep 2025 08:00:00 GMT',1756713600,'header',1756713600,0,NULL,'d89a111fc2552f79',NULL,0,'listed',1756713600,'[3,4,5,6,7,8,9,10,2]');
INSERT INTO "url" VALUES(2,'https://partner.example/',2,3,NULL,1,0,1,0,NULL,NULL,'unlisted:offsite',NULL,1.79531416186646580693e+09,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:offsite',NULL,NULL);
INSERT INTO "url" VALUES(3,'http://127.0.0.1:36967/lanterns/',2,3,1,1,0,1,1,NULL,NULL,'listed',NULL,1.79531416189704847328e+09,2,200,NULL,'Sun, 03 Aug 2025 00:00:00 GMT',1754179200,'header',1754179200,0,NULL,'d5e5110f02ceb7ec',NULL,0,'listed',1754179200,'[13,14,15,16,17,18,19,20,21,22,23,24,25,26]');
INSERT INTO "url" VALUES(4,'http://127.0.0.1:36967/guides/',2,3,1,1,0,1,1,NULL,NULL,'listed',NULL,1.79531416189704847328e+09,2,200,NULL,'Tue, 11 Feb 2025 00:00:00 GMT',1739232000,'header',1739232000,0,NULL,'03e0766de4ff33bf',NULL,0,'listed',1739232000,'[27,28,29,30,31]');
INSERT INTO "url" VALUES(5,'http://127.0.0.1:36967/about',2,3,1,1,0,1,1,NULL,NULL,'listed',NULL,1.79531416189704847328e+09,2,200,NULL,'Friday, 14-Mar-25 09:30:00 GMT',1741944600,'header',1741944600,0,NULL,'d715dba4ff0d380f',NULL,0,'listed',1741944600,'[1,32,33]');
INSERT INTO "url" VALUES(6,'http://127.0.0.1:36967/contact',2,3,1,1,0,1,1,NULL,NULL,'listed',NULL,1.79531416189219617841e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'4cd1dea0595b786d',NULL,NULL,'listed',NULL,'[34]');
INSERT INTO "url" VALUES(7,'http://127.0.0.1:36967/news',2,3,1,1,0,1,1,NULL,NULL,'listed',NULL,1.79531416189704847328e+09,2,200,NULL,'Wed, 20 Aug 2025 00:00:00 GMT',1755648000,'header',1755648000,0,NULL,'77431c4698a90206',NULL,0,'listed',1755648000,'[36]');
INSERT INTO "url" VALUES(8,'http://127.0.0.1:36967/basket',2,3,1,1,0,1,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416188368415833e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(9,'http://127.0.0.1:36967/shop',2,3,1,1,0,1,1,NULL,NULL,'moved','http://127.0.0.1:36967/store',1.79531416189219617841e+09,2,301,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[39]');
INSERT INTO "url" VALUES(10,'http://127.0.0.1:36967/catalogue.pdf',2,3,1,1,0,1,1,NULL,NULL,'unlisted:type','application/pdf',1.79531416189219617841e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'unlisted:type',NULL,NULL);
INSERT INTO "url" VALUES(11,'http://127.0.0.1:36967/workshop',2,3,1,0,0,NULL,1,NULL,NULL,'listed',NULL,1.79531416189219617841e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'85e3efaed69acef7',NULL,NULL,'listed',NULL,NULL);
INSERT INTO "url" VALUES(12,'http://127.0.0.1:36967/lanterns/tin',2,3,1,0,0,NULL,1,NULL,NULL,'failed:not-found','404',1.79531416189219617841e+09,2,404,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'failed:not-found',NULL,NULL);
INSERT INTO "url" VALUES(13,'http://127.0.0.1:36967/lanterns/storm',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Tue, 05 Nov 2024 12:30:00 GMT',1730809800,'header',1730809800,0,NULL,'3c4e600b67610fda',NULL,0,'listed',1730809800,'[3,14,37,38]');
INSERT INTO "url" VALUES(14,'http://127.0.0.1:36967/lanterns/candle',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Sun, 05 Jan 2025 12:30:00 GMT',1736080200,'header',1736080200,0,NULL,'4d4339f9a3ce2a65',NULL,0,'listed',1736080200,'[3,15,40,41]');
INSERT INTO "url" VALUES(15,'http://127.0.0.1:36967/lanterns/paper',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Wed, 05 Mar 2025 12:30:00 GMT',1741177800,'header',1741177800,0,NULL,'47802b42f2aa27d8',NULL,0,'listed',1741177800,'[3,16,42,43]');
INSERT INTO "url" VALUES(16,'http://127.0.0.1:36967/lanterns/railway',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Mon, 05 Jun 2023 12:30:00 GMT',1685968200,'header',1685968200,0,NULL,'ccf33b8ab2897161',NULL,0,'listed',1685968200,'[3,17,44,45]');
INSERT INTO "url" VALUES(17,'http://127.0.0.1:36967/lanterns/ship',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Mon, 05 Feb 2024 12:30:00 GMT',1707136200,'header',1707136200,0,NULL,'df555fcdb1ac2f29',NULL,0,'listed',1707136200,'[3,18,46,47]');
INSERT INTO "url" VALUES(18,'http://127.0.0.1:36967/lanterns/solar',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Tue, 05 Aug 2025 12:30:00 GMT',1754397000,'header',1754397000,0,NULL,'a93c7b3cb0c2644d',NULL,0,'listed',1754397000,'[3,19,48,49]');
INSERT INTO "url" VALUES(19,'http://127.0.0.1:36967/lanterns/garden',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Mon, 05 May 2025 12:30:00 GMT',1746448200,'header',1746448200,0,NULL,'334b859461327a85',NULL,0,'listed',1746448200,'[3,20,51,52]');
INSERT INTO "url" VALUES(20,'http://127.0.0.1:36967/lanterns/miner',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Mon, 05 Sep 2022 12:30:00 GMT',1662381000,'header',1662381000,0,NULL,'fdaadd0a91b5b196',NULL,0,'listed',1662381000,'[3,21,53,54]');
INSERT INTO "url" VALUES(21,'http://127.0.0.1:36967/lanterns/magic',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416194401884081e+09,2,200,NULL,'Sun, 05 Dec 2021 12:30:00 GMT',1638707400,'header',1638707400,0,NULL,'2179b881d305e399',NULL,0,'listed',1638707400,'[3,22,57,58]');
INSERT INTO "url" VALUES(22,'http://127.0.0.1:36967/lanterns/signal',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Fri, 05 Jul 2024 12:30:00 GMT',1720182600,'header',1720182600,0,NULL,'6d41dea574a61e18',NULL,0,'listed',1720182600,'[3,23,55,56]');
INSERT INTO "url" VALUES(23,'http://127.0.0.1:36967/lanterns/camping',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Thu, 05 Jun 2025 12:30:00 GMT',1749126600,'header',1749126600,0,NULL,'ab33496ea7154a98',NULL,0,'listed',1749126600,'[3,24,59,60]');
INSERT INTO "url" VALUES(24,'http://127.0.0.1:36967/lanterns/wall',2,3,1,2,0,3,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Sun, 05 Mar 2023 12:30:00 GMT',1678019400,'header',1678019400,0,NULL,'09c9821e82c9ef98',NULL,0,'listed',1678019400,'[3,13,61,62]');
INSERT INTO "url" VALUES(25,'http://127.0.0.1:36967/lanterns/?sort=price',2,3,1,2,0,3,1,NULL,NULL,'unlisted:robots','line 3: Disallow: /*?sort=',1.79531416191222810744e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(26,'http://127.0.0.1:36967/lanterns/?view=grid',2,3,1,2,0,3,1,NULL,NULL,'unlisted:canonical','http://127.0.0.1:36967/lanterns/',1.79531416194401884081e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'26670771718ee2d4',NULL,NULL,'unlisted:canonical',NULL,'[13,14,15,16,17,18,19,20,21,22,23,24,3]');
INSERT INTO "url" VALUES(27,'http://127.0.0.1:36967/guides/trimming-a-wick',2,3,1,2,0,4,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Tue, 09 Jan 2024 00:00:00 GMT',1704758400,'header',1704758400,0,NULL,'a188e0ea0c3eb005',NULL,0,'listed',1704758400,'[4,50,-35]');
INSERT INTO "url" VALUES(28,'http://127.0.0.1:36967/guides/choosing-a-mantle',2,3,1,2,0,4,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Fri, 09 Feb 2024 00:00:00 GMT',1707436800,'header',1707436800,0,NULL,'8323e9592357e027',NULL,0,'listed',1707436800,'[4,50,-35]');
INSERT INTO "url" VALUES(29,'http://127.0.0.1:36967/guides/cleaning-soot',2,3,1,2,0,4,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Mon, 11 Mar 2024 00:00:00 GMT',1710115200,'header',1710115200,0,NULL,'b6b58fe277e1d80e',NULL,0,'listed',1710115200,'[4,50,-35]');
INSERT INTO "url" VALUES(30,'http://127.0.0.1:36967/guides/storing-paraffin',2,3,1,2,0,4,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Thu, 11 Apr 2024 00:00:00 GMT',1712793600,'header',1712793600,0,NULL,'172fcdbc874523fb',NULL,0,'listed',1712793600,'[4,50,-35]');
INSERT INTO "url" VALUES(31,'http://127.0.0.1:36967/guides/a-short-history',2,3,1,2,0,4,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Sun, 12 May 2024 00:00:00 GMT',1715472000,'header',1715472000,0,NULL,'03dd5ecaef13829c',NULL,0,'listed',1715472000,'[4,50,-35]');
INSERT INTO "url" VALUES(32,'http://127.0.0.1:36967/team',2,3,1,2,0,5,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Wed Apr  2 10:00:00 2025',1743588000,'header',1743588000,0,NULL,'dc9a4fc61cdb3efd',NULL,0,'listed',1743588000,NULL);
INSERT INTO "url" VALUES(33,'http://127.0.0.1:36967/press',2,3,1,2,0,5,1,NULL,NULL,'unlisted:noindex',NULL,1.79531416194401884081e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'2524a4a04cab7b90',NULL,NULL,'unlisted:noindex',NULL,'[63,64,65]');
INSERT INTO "url" VALUES(34,'http://127.0.0.1:36967/thanks',2,3,1,2,0,6,1,NULL,NULL,'unlisted:noindex',NULL,1.79531416191222810744e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'7612d2dad38771be',NULL,NULL,'unlisted:noindex',NULL,NULL);
INSERT INTO "url" VALUES(35,'http://127.0.0.1:36967/login',2,3,NULL,3,0,29,0,NULL,NULL,'unlisted:nofollow',NULL,1.79531416195733118049e+09,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:nofollow',NULL,NULL);
INSERT INTO "url" VALUES(36,'http://127.0.0.1:36967/news?page=2',2,3,1,2,0,7,1,NULL,NULL,'listed',NULL,1.79531416195871877669e+09,2,200,NULL,'Thu, 02 May 2024 00:00:00 GMT',1714608000,'header',1714608000,0,NULL,'55d6cd276df39666',NULL,0,'listed',1714608000,'[7]');
INSERT INTO "url" VALUES(37,'http://127.0.0.1:36967/lanterns/storm?colour=red',2,3,1,3,0,13,1,NULL,NULL,'unlisted:canonical','http://127.0.0.1:36967/lanterns/storm',1.79531416197189307212e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'acf52e77195b24ff',NULL,NULL,'unlisted:canonical',NULL,'[13]');
INSERT INTO "url" VALUES(38,'http://127.0.0.1:36967/basket?add=storm',2,3,1,3,0,13,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(39,'http://127.0.0.1:36967/store',2,3,1,1,1,9,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/',1.79531416191222810744e+09,2,308,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[3]');
INSERT INTO "url" VALUES(40,'http://127.0.0.1:36967/lanterns/candle?colour=red',2,3,1,3,0,14,1,NULL,NULL,'unlisted:canonical','http://127.0.0.1:36967/lanterns/candle',1.79531416197189307212e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'eed7c3730d7e4cf9',NULL,NULL,'unlisted:canonical',NULL,'[14]');
INSERT INTO "url" VALUES(41,'http://127.0.0.1:36967/basket?add=candle',2,3,1,3,0,14,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(42,'http://127.0.0.1:36967/lanterns/paper?colour=red',2,3,1,3,0,15,1,NULL,NULL,'unlisted:canonical','http://127.0.0.1:36967/lanterns/paper',1.79531416197189307212e+09,2,200,NULL,NULL,NULL,NULL,NULL,0,NULL,'f9698321e5d6f8e5',NULL,NULL,'unlisted:canonical',NULL,'[15]');
INSERT INTO "url" VALUES(43,'http://127.0.0.1:36967/basket?add=paper',2,3,1,3,0,15,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(44,'http://127.0.0.1:36967/lanterns/railway?colour=red',2,3,1,3,0,16,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/railway',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[16]');
INSERT INTO "url" VALUES(45,'http://127.0.0.1:36967/basket?add=railway',2,3,1,3,0,16,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(46,'http://127.0.0.1:36967/lanterns/ship?colour=red',2,3,1,3,0,17,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/ship',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[17]');
INSERT INTO "url" VALUES(47,'http://127.0.0.1:36967/basket?add=ship',2,3,1,3,0,17,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(48,'http://127.0.0.1:36967/lanterns/solar?colour=red',2,3,1,3,0,18,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/solar',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[18]');
INSERT INTO "url" VALUES(49,'http://127.0.0.1:36967/basket?add=solar',2,3,1,3,0,18,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(50,'http://127.0.0.1:36967/guides/missing',2,3,1,3,0,29,1,NULL,NULL,'failed:not-found','404',1.79531416197352766987e+09,2,404,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'failed:not-found',NULL,NULL);
INSERT INTO "url" VALUES(51,'http://127.0.0.1:36967/lanterns/garden?colour=red',2,3,1,3,0,19,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/garden',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[19]');
INSERT INTO "url" VALUES(52,'http://127.0.0.1:36967/basket?add=garden',2,3,1,3,0,19,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(53,'http://127.0.0.1:36967/lanterns/miner?colour=red',2,3,1,3,0,20,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/miner',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[20]');
INSERT INTO "url" VALUES(54,'http://127.0.0.1:36967/basket?add=miner',2,3,1,3,0,20,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(55,'http://127.0.0.1:36967/lanterns/signal?colour=red',2,3,1,3,0,22,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/signal',1.79531416197352766987e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[22]');
INSERT INTO "url" VALUES(56,'http://127.0.0.1:36967/basket?add=signal',2,3,1,3,0,22,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416197189307212e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(57,'http://127.0.0.1:36967/lanterns/magic?colour=red',2,3,1,3,0,21,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/magic',1.79531416197189307212e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[21]');
INSERT INTO "url" VALUES(58,'http://127.0.0.1:36967/basket?add=magic',2,3,1,3,0,21,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416195871877669e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(59,'http://127.0.0.1:36967/lanterns/camping?colour=red',2,3,1,3,0,23,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/camping',1.79531416197352766987e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[23]');
INSERT INTO "url" VALUES(60,'http://127.0.0.1:36967/basket?add=camping',2,3,1,3,0,23,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416197189307212e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(61,'http://127.0.0.1:36967/lanterns/wall?colour=red',2,3,1,3,0,24,1,NULL,NULL,'moved','http://127.0.0.1:36967/lanterns/wall',1.79531416197352766987e+09,2,302,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'moved',NULL,'[24]');
INSERT INTO "url" VALUES(62,'http://127.0.0.1:36967/basket?add=wall',2,3,1,3,0,24,1,NULL,NULL,'unlisted:robots','line 2: Disallow: /basket',1.79531416197189307212e+09,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'unlisted:robots',NULL,NULL);
INSERT INTO "url" VALUES(63,'http://127.0.0.1:36967/press/1',2,3,1,3,0,33,1,NULL,NULL,'listed',NULL,1.79531416197189307212e+09,2,200,NULL,'Fri, 01 Jan 2100 00:00:00 GMT',NULL,NULL,NULL,0,NULL,'4d687d97215d21e6',NULL,NULL,'listed',NULL,NULL);
INSERT INTO "url" VALUES(64,'http://127.0.0.1:36967/press/2',2,3,1,3,0,33,1,NULL,NULL,'listed',NULL,1.79531416197189307212e+09,2,200,NULL,'yesterday',NULL,NULL,NULL,0,NULL,'35baa4a2cfb75b8a',NULL,NULL,'listed',NULL,NULL);
INSERT INTO "url" VALUES(65,'http://127.0.0.1:36967/press/3',2,3,1,3,0,33,1,NULL,NULL,'failed:server-error','500',1.7953141665637254715e+09,2,500,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'failed:server-error',NULL,NULL);
CREATE TABLE word (
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
INSERT INTO "word" VALUES(1,'lies','{}');
INSERT INTO "word" VALUES(1,'seeded','yes');
INSERT INTO "word" VALUES(2,'lies','{}');
INSERT INTO "word" VALUES(2,'seeded','yes');
CREATE INDEX due ON url (host, depth, id) WHERE state = 0;
CREATE INDEX out ON url (due) WHERE state IN (1, 2);
CREATE INDEX open ON url (depth) WHERE state < 3;
CREATE INDEX nofollow ON url (id) WHERE outcome = 'unlisted:nofollow';
COMMIT;
