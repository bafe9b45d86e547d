-- 1: all rows
SELECT count(*) FROM web.hits;

-- 2: rows with a value that few have
SELECT count(*) FROM web.hits WHERE advert <> 0;

-- 3: three aggregates of two columns
SELECT sum(advert), count(*), avg(width) FROM web.hits;

-- 4: the mean of a column of large numbers
SELECT avg(user_id) FROM web.hits;

-- 5: distinct numbers
SELECT count(DISTINCT user_id) FROM web.hits;

-- 6: distinct texts
SELECT count(DISTINCT search_phrase) FROM web.hits;

-- 7: bounds of a date
SELECT min(viewed_on), max(viewed_on) FROM web.hits;

-- 8: few groups of few rows
SELECT advert, count(*) AS views FROM web.hits WHERE advert <> 0 GROUP BY advert ORDER BY views DESC, advert;

-- 9: distinct users by region
SELECT region, count(DISTINCT user_id) AS users FROM web.hits GROUP BY region ORDER BY users DESC, region LIMIT 10;

-- 10: several aggregates by region
SELECT region, sum(advert) AS adverts, count(*) AS views, avg(width) AS mean_width, count(DISTINCT user_id) AS users
FROM web.hits GROUP BY region ORDER BY views DESC, region LIMIT 10;

-- 11: distinct users by a text that is mostly empty
SELECT phone_model, count(DISTINCT user_id) AS users FROM web.hits WHERE phone_model <> ''
GROUP BY phone_model ORDER BY users DESC, phone_model LIMIT 10;

-- 12: the same by two columns
SELECT phone, phone_model, count(DISTINCT user_id) AS users FROM web.hits WHERE phone_model <> ''
GROUP BY phone, phone_model ORDER BY users DESC, phone, phone_model LIMIT 10;

-- 13: the most frequent texts
SELECT search_phrase, count(*) AS views FROM web.hits WHERE search_phrase <> ''
GROUP BY search_phrase ORDER BY views DESC, search_phrase LIMIT 10;

-- 14: texts by distinct users
SELECT search_phrase, count(DISTINCT user_id) AS users FROM web.hits WHERE search_phrase <> ''
GROUP BY search_phrase ORDER BY users DESC, search_phrase LIMIT 10;

-- 15: groups of a number and a text
SELECT search_engine, search_phrase, count(*) AS views FROM web.hits WHERE search_phrase <> ''
GROUP BY search_engine, search_phrase ORDER BY views DESC, search_engine, search_phrase LIMIT 10;

-- 16: the most frequent of many numbers
SELECT user_id, count(*) AS views FROM web.hits GROUP BY user_id ORDER BY views DESC, user_id LIMIT 10;

-- 17: many groups of a number and a text
SELECT user_id, search_phrase, count(*) AS views FROM web.hits
GROUP BY user_id, search_phrase ORDER BY views DESC, user_id, search_phrase LIMIT 10;

-- 18: the first of many groups
SELECT user_id, search_phrase, count(*) AS views FROM web.hits
GROUP BY user_id, search_phrase ORDER BY user_id, search_phrase LIMIT 10;

-- 19: groups by a part of a time
SELECT user_id, minute(viewed_at) AS at_minute, search_phrase, count(*) AS views FROM web.hits
GROUP BY user_id, at_minute, search_phrase ORDER BY views DESC, user_id, at_minute, search_phrase LIMIT 10;

-- 20: the rows of one user
SELECT user_id FROM web.hits WHERE user_id = xxhash64(17L);

-- 21: texts that contain a word
SELECT count(*) FROM web.hits WHERE url LIKE '%google%';

-- 22: groups of rows that contain a word
SELECT search_phrase, min(url), count(*) AS views FROM web.hits WHERE url LIKE '%google%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY views DESC, search_phrase LIMIT 10;

-- 23: the same with one word and without another
SELECT search_phrase, min(url), min(title), count(*) AS views, count(DISTINCT user_id) AS users FROM web.hits
WHERE title LIKE '%Google%' AND url NOT LIKE '%.google.%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY views DESC, search_phrase LIMIT 10;

-- 24: all columns of the first rows
SELECT * FROM web.hits WHERE url LIKE '%google%' ORDER BY viewed_at, view_id LIMIT 10;

-- 25: texts in the order of a time
SELECT search_phrase FROM web.hits WHERE search_phrase <> '' ORDER BY viewed_at, view_id LIMIT 10;

-- 26: texts in their own order
SELECT search_phrase FROM web.hits WHERE search_phrase <> '' ORDER BY search_phrase LIMIT 10;

-- 27: texts in the order of both
SELECT search_phrase FROM web.hits WHERE search_phrase <> '' ORDER BY viewed_at, search_phrase LIMIT 10;

-- 28: the mean length of texts, of large groups
SELECT counter, avg(length(url)) AS mean_length, count(*) AS views FROM web.hits WHERE url <> ''
GROUP BY counter HAVING count(*) > 100 ORDER BY mean_length DESC, counter LIMIT 25;

-- 29: groups by what a regular expression finds
SELECT regexp_replace(referrer, '^https?://(?:www\\.)?([^/]+)/.*$', '$1') AS site,
    avg(length(referrer)) AS mean_length, count(*) AS views, min(referrer)
FROM web.hits WHERE referrer <> ''
GROUP BY site HAVING count(*) > 100 ORDER BY mean_length DESC, site LIMIT 25;

-- 30: many sums of one column
SELECT sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5), sum(width + 6),
    sum(width + 7), sum(width + 8), sum(width + 9), sum(width + 10), sum(width + 11), sum(width + 12), sum(width + 13),
    sum(width + 14), sum(width + 15), sum(width + 16), sum(width + 17), sum(width + 18), sum(width + 19), sum(width + 20),
    sum(width + 21), sum(width + 22), sum(width + 23), sum(width + 24), sum(width + 25), sum(width + 26), sum(width + 27),
    sum(width + 28), sum(width + 29), sum(width + 30), sum(width + 31), sum(width + 32), sum(width + 33), sum(width + 34),
    sum(width + 35), sum(width + 36), sum(width + 37), sum(width + 38), sum(width + 39), sum(width + 40), sum(width + 41)
FROM web.hits;

-- 31: groups of an engine and an address
SELECT search_engine, client_ip, count(*) AS views, sum(is_refresh) AS refreshed, avg(width) AS mean_width
FROM web.hits WHERE search_phrase <> ''
GROUP BY search_engine, client_ip ORDER BY views DESC, search_engine, client_ip LIMIT 10;

-- 32: groups of a few rows each, of those with a text
SELECT view_id, client_ip, count(*) AS views, sum(is_refresh) AS refreshed, avg(width) AS mean_width
FROM web.hits WHERE search_phrase <> ''
GROUP BY view_id, client_ip ORDER BY views DESC, view_id, client_ip LIMIT 10;

-- 33: as many groups as rows
SELECT view_id, client_ip, count(*) AS views, sum(is_refresh) AS refreshed, avg(width) AS mean_width
FROM web.hits GROUP BY view_id, client_ip ORDER BY views DESC, view_id, client_ip LIMIT 10;

-- 34: the most frequent long texts
SELECT url, count(*) AS views FROM web.hits GROUP BY url ORDER BY views DESC, url LIMIT 10;

-- 35: the same with a constant
SELECT 1 AS one, url, count(*) AS views FROM web.hits GROUP BY one, url ORDER BY views DESC, url LIMIT 10;

-- 36: groups of expressions of one column
SELECT client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) AS views FROM web.hits
GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3 ORDER BY views DESC, client_ip LIMIT 10;

-- 37: pages of one counter in a month
SELECT url, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_counted = 1 AND is_refresh = 0 AND url <> ''
GROUP BY url ORDER BY views DESC, url LIMIT 10;

-- 38: titles of one counter in a month
SELECT title, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_counted = 1 AND is_refresh = 0 AND title <> ''
GROUP BY title ORDER BY views DESC, title LIMIT 10;

-- 39: links, after many others
SELECT url, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on >= DATE '2013-07-01' AND viewed_on <= DATE '2013-07-31' AND is_refresh = 0
    AND is_link <> 0 AND is_download = 0
GROUP BY url ORDER BY views DESC, url LIMIT 10 OFFSET 20;

-- 40: groups by a case
SELECT traffic, search_engine, advert,
    CASE WHEN search_engine = 0 AND advert = 0 THEN referrer ELSE '' END AS came_from, url AS went_to, count(*) AS views
FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0
GROUP BY traffic, search_engine, advert, came_from, went_to
ORDER BY views DESC, traffic, search_engine, advert, came_from, went_to LIMIT 10 OFFSET 100;

-- 41: groups of a hash and a date
SELECT url_hash, viewed_on, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0
    AND traffic IN (-1, 6) AND referrer_hash = xxhash64('google')
GROUP BY url_hash, viewed_on ORDER BY views DESC, url_hash, viewed_on LIMIT 10 OFFSET 10;

-- 42: sizes of windows
SELECT window_width, window_height, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0 AND is_counted = 1
    AND url_hash = xxhash64(0L)
GROUP BY window_width, window_height ORDER BY views DESC, window_width, window_height LIMIT 10;

-- 43: minutes of two days
SELECT date_trunc('MINUTE', viewed_at) AS at_minute, count(*) AS views FROM web.hits
WHERE counter = 0 AND viewed_on BETWEEN DATE '2013-07-14' AND DATE '2013-07-15' AND is_refresh = 0 AND is_counted = 1
GROUP BY at_minute ORDER BY at_minute LIMIT 10 OFFSET 100;
