<?php
// SPDX-License-Identifier: Apache-2.0
//
// Reads the path of a request in the way that X-Mode names. closed.json is in its directory.
$closed = json_decode(file_get_contents(__DIR__ . '/closed.json'));
$target = $_SERVER['REQUEST_URI'];
$path = match ($_SERVER['HTTP_X_MODE'] ?? '') {
	'parse_url' => parse_url($target, PHP_URL_PATH),
	'strtok' => strtok($target, '?'),
	'script' => $_SERVER['SCRIPT_NAME'] . ($_SERVER['PATH_INFO'] ?? ''),
	default => null,
};
$text = 'open';
foreach ($closed as $c) {
	$p = rawurldecode((string) $path);
	if ($p === $c || str_ends_with($c, '/') && str_starts_with($p, $c)) {
		$text = 'CLOSED';
	}
}
header('Content-Type: text/html');
echo '<!DOCTYPE html><html><head><title>x</title></head><body>' . $text . "</body></html>\n";
